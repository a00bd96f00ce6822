package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * KAI: annotations with a fraction of a GPU, or memory. The class follows the priority class and
 * the preemptibility. The forms are those of https://github.com/kai-scheduler/KAI-Scheduler,
 * docs/gpu-sharing, docs/priority and docs/developer/designs/priority-preemptibility-separation.
 */
final class KaiWords implements Vocabulary {
  private static final String FRACTION = "gpu-fraction";
  private static final String MEMORY = "gpu-memory";
  private static final String COUNT = "gpu-fraction-num-devices";
  private static final String CONTAINER = "gpu-fraction-container-name";
  private static final String NAMED = "nvidia.com/container.";
  private static final String NAMED_REQUEST = ".gpu-memory.request";
  private static final String NAMED_LIMIT = ".gpu-memory.limit";
  private static final String WHOLES = "nvidia.com/gpu";
  private static final List<String> QUEUES = List.of("kai.scheduler/queue", "runai/queue");
  private static final String PRIORITY = "priorityClassName";
  private static final String PREEMPTIBILITY = "kai.scheduler/preemptibility";

  @Override
  public Optional<GpuPart> read(PodView pod) {
    Optional<String> fraction = pod.annotation(FRACTION);
    Optional<String> memory = pod.annotation(MEMORY);
    Optional<String> named = namedMemory(pod);
    if (fraction.isEmpty() && memory.isEmpty() && named.isEmpty()) {
      if (pod.annotation(COUNT).isPresent()) {
        throw new PodRefusedException(
            COUNT + " is a number of parts of GPUs: it needs " + FRACTION + " or " + MEMORY);
      }
      return Optional.empty();
    }
    if (pod.asks(WHOLES) || (fraction.isPresent() && (memory.isPresent() || named.isPresent()))) {
      throw new PodRefusedException(
          "a pod asks one of "
              + FRACTION
              + ", "
              + MEMORY
              + " and "
              + WHOLES
              + ": asked "
              + FRACTION
              + "="
              + fraction.orElse("")
              + " "
              + named.orElse(MEMORY)
              + "="
              + named.flatMap(pod::annotation).or(() -> memory).orElse("")
              + " "
              + WHOLES
              + "="
              + pod.amount(WHOLES).map(BigDecimal::toPlainString).orElse(""));
    }
    int gpus =
        pod.annotation(COUNT)
            .map(text -> pod.whole(COUNT, PodView.number(COUNT, text), 1, 64, "a number of GPUs"))
            .orElse(1);
    String container = container(pod, named);
    if (fraction.isEmpty()) {
      return Optional.of(
          preempted(
              pod,
              GpuPart.shared("KAI", container, gpus, 0, memory(pod, named), 0)
                  .with(SharePolicy.BEST_EFFORT)));
    }
    double percent = percent(fraction.get());
    int share = Math.max(1, (int) percent);
    return Optional.of(
        preempted(
            pod,
            GpuPart.shared("KAI", container, gpus, share, MemorySize.ZERO, percent)
                .with(SharePolicy.BURST_SHARE)));
  }

  /** {@return the annotation with a container's memory: the request, or the limit alone} */
  private static Optional<String> namedMemory(PodView pod) {
    List<String> requests = pod.annotations(NAMED, NAMED_REQUEST);
    List<String> limits = pod.annotations(NAMED, NAMED_LIMIT);
    Set<String> containers = new TreeSet<>();
    requests.forEach(name -> containers.add(named(name, NAMED_REQUEST)));
    limits.forEach(name -> containers.add(named(name, NAMED_LIMIT)));
    if (containers.size() > 1) {
      throw new PodRefusedException(
          "one container of a pod may use GPUs: asked by " + containers + "; split the pod");
    }
    return requests.isEmpty() ? limits.stream().findFirst() : Optional.of(requests.get(0));
  }

  private static String named(String annotation, String suffix) {
    return annotation.substring(
        NAMED.length(), Math.max(NAMED.length(), annotation.length() - suffix.length()));
  }

  private static MemorySize memory(PodView pod, Optional<String> named) {
    MemorySize plain = pod.memory(MEMORY, MemorySize.ofMebibytes(1));
    if (named.isEmpty()) {
      return plain;
    }
    MemorySize size = pod.memory(named.get(), MemorySize.ofBytes(1));
    if (plain.bytes() > 0 && !plain.equals(size)) {
      throw new PodRefusedException(
          MEMORY + " is " + plain + " and " + named.get() + " is " + size + ": leave out one");
    }
    return size;
  }

  private static String containerOf(String annotation) {
    return named(annotation, annotation.endsWith(NAMED_REQUEST) ? NAMED_REQUEST : NAMED_LIMIT);
  }

  /** {@return the container that KAI's annotations name; empty if they name none} */
  static Optional<String> container(PodView pod) {
    return pod.annotation(CONTAINER).or(() -> namedMemory(pod).map(KaiWords::containerOf));
  }

  private static String container(PodView pod, Optional<String> named) {
    Optional<String> said = pod.annotation(CONTAINER);
    Optional<String> used = named.map(KaiWords::containerOf);
    if (used.isPresent() && said.isPresent() && !said.equals(used)) {
      throw new PodRefusedException(
          CONTAINER + " is " + said.get() + " and " + named.get() + " names another container");
    }
    String container = said.or(() -> used).orElseGet(() -> pod.asker(List.of()));
    if (!pod.hasContainer(container)) {
      // The kubelet does not tell which devices other init containers have.
      throw new PodRefusedException(
          (said.isPresent() || used.isEmpty() ? CONTAINER : named.get())
              + " names no container of the pod, nor an init container with restartPolicy Always: "
              + container);
    }
    return container;
  }

  /** {@return a fraction in percent; parts of a percent count for memory} */
  private static double percent(String text) {
    BigDecimal fraction = PodView.number(FRACTION, text);
    if (fraction.signum() <= 0 || fraction.compareTo(BigDecimal.ONE) >= 0) {
      throw new PodRefusedException(
          FRACTION + " is above 0 and below 1: asked " + text + "; for whole GPUs ask " + WHOLES);
    }
    return fraction.movePointRight(2).doubleValue();
  }

  /** {@return whether a pod is KAI's: all of its pods are in a queue} */
  static boolean isQueued(PodView pod) {
    return QUEUES.stream().anyMatch(one -> pod.label(one).isPresent());
  }

  /**
   * {@return a pod's part, with the class that its priority and preemptibility mean} A label is
   * stronger than the pod's own priority class, as in KAI. Offline pods are those that may be
   * evicted.
   */
  static GpuPart preempted(PodView pod, GpuPart part) {
    GpuPart ranked =
        switch (pod.label(PRIORITY).orElseGet(pod::priorityClass)) {
          case "inference" -> part.with(PreemptionClass.ONLINE);
          case "build" -> part.with(PreemptionClass.NEARLINE);
          case "train", "build-preemptible" -> part.with(PreemptionClass.OFFLINE);
          default -> part;
        };
    boolean isOffline = ranked.preemptionClass().equals(Optional.of(PreemptionClass.OFFLINE));
    return switch (pod.label(PREEMPTIBILITY).orElse("")) {
      case "preemptible" -> ranked.with(PreemptionClass.OFFLINE);
      case "non-preemptible", "semi-preemptible" ->
          isOffline ? ranked.with(PreemptionClass.NEARLINE) : ranked;
      default -> ranked;
    };
  }
}
