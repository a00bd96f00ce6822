package dev.vgpu.k8s.names;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/**
 * KAI: annotations with a fraction of a GPU, or MiB. The class follows the priority class and the
 * preemptibility. The forms are those of https://github.com/NVIDIA/KAI-Scheduler, docs/gpu-sharing,
 * docs/priority and docs/developer/designs/priority-preemptibility-separation.
 */
final class KaiWords implements Vocabulary {
  private static final String FRACTION = "gpu-fraction";
  private static final String MEMORY = "gpu-memory";
  private static final String COUNT = "gpu-fraction-num-devices";
  static final String CONTAINER = "gpu-fraction-container-name";
  private static final String WHOLES = "nvidia.com/gpu";
  private static final List<String> QUEUES = List.of("kai.scheduler/queue", "runai/queue");
  private static final String PRIORITY = "priorityClassName";
  private static final String PREEMPTIBILITY = "kai.scheduler/preemptibility";

  @Override
  public Optional<GpuPart> read(PodView pod) {
    Optional<String> fraction = pod.annotation(FRACTION);
    Optional<String> memory = pod.annotation(MEMORY);
    if (fraction.isEmpty() && memory.isEmpty()) {
      if (pod.annotation(COUNT).isPresent()) {
        throw new PodRefusedException(
            COUNT + " is a number of parts of GPUs: it needs " + FRACTION + " or " + MEMORY);
      }
      return Optional.empty();
    }
    if (pod.asks(WHOLES) || (fraction.isPresent() && memory.isPresent())) {
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
              + MEMORY
              + "="
              + memory.orElse("")
              + " "
              + WHOLES
              + "="
              + pod.amount(WHOLES).map(BigDecimal::toPlainString).orElse(""));
    }
    int gpus =
        pod.annotation(COUNT)
            .map(text -> pod.whole(COUNT, PodView.number(COUNT, text), 1, 64, "a number of GPUs"))
            .orElse(1);
    String container = pod.annotation(CONTAINER).orElseGet(() -> pod.asker(List.of()));
    if (!pod.hasContainer(container)) {
      // The kubelet does not tell which devices other init containers have.
      throw new PodRefusedException(
          CONTAINER
              + " names no container of the pod, nor an init container with restartPolicy Always: "
              + container);
    }
    if (memory.isPresent()) {
      MemorySize size = pod.memory(MEMORY, MemorySize.ofMebibytes(1));
      return Optional.of(
          preempted(
              pod,
              GpuPart.shared("KAI", container, gpus, 0, size, 0).with(SharePolicy.BEST_EFFORT)));
    }
    int percent = percent(fraction.get());
    return Optional.of(
        preempted(
            pod,
            GpuPart.shared("KAI", container, gpus, percent, MemorySize.ZERO, percent)
                .with(SharePolicy.BURST_SHARE)));
  }

  private static int percent(String text) {
    BigDecimal percent = PodView.number(FRACTION, text).movePointRight(2);
    if (percent.compareTo(BigDecimal.ONE) < 0
        || percent.compareTo(BigDecimal.valueOf(99)) > 0
        || percent.stripTrailingZeros().scale() > 0) {
      throw new PodRefusedException(
          FRACTION
              + " is 0.01 to 0.99 of a GPU in steps of 0.01: asked "
              + text
              + "; for whole GPUs ask "
              + WHOLES);
    }
    return percent.intValueExact();
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
