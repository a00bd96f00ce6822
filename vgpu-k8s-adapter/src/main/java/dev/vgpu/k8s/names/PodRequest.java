package dev.vgpu.k8s.names;

import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.HashSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What a pod requests of GPUs. Immutable.
 *
 * @param system the system whose vocabulary it uses
 * @param container the container that uses the GPUs; empty if several containers, or init
 *     containers, use whole ones, which NVIDIA's device plugin alone can give
 * @param gpus how many GPUs of one node
 * @param sharePercent the share of each, 1 to 100; 0 for whole GPUs and best effort
 * @param isWhole whether the GPUs are exclusive
 * @param memory the least memory on each
 * @param memoryPercent the least part of each card's memory, 0 to 100 percent
 * @param policy how the share binds
 * @param preemptionClass the class
 * @param models the acceptable GPU models, or words of their names; empty for any
 * @param spread the group whose pods must be on different nodes; empty for none
 * @param sameNodeAs the pod whose node it must share, with its namespace; empty for none
 * @param runS how long it may run at most, in seconds; infinite if not stated
 * @param gang the gang it belongs to
 * @param resources the resources by which the container can get a virtual GPU; a node must offer
 *     one
 */
public record PodRequest(
    String system,
    String container,
    int gpus,
    int sharePercent,
    boolean isWhole,
    MemorySize memory,
    double memoryPercent,
    SharePolicy policy,
    PreemptionClass preemptionClass,
    Set<String> models,
    String spread,
    String sameNodeAs,
    double runS,
    Optional<GangName> gang,
    Set<KubeletResource> resources) {
  /** The most GPUs under one virtual GPU of a container: the CUDA hook accounts for no more. */
  public static final int MOST_GPUS = 8;

  /** Copies the sets. */
  public PodRequest {
    models = Set.copyOf(models);
    resources = Set.copyOf(resources);
  }

  /**
   * {@return this request in the fleet's terms}
   *
   * @param name the request's name in the fleet
   * @param cpuMillis thousandths of a processor
   * @param hostMemory host memory
   * @param nodes the acceptable nodes; empty for any
   * @param present the models of the cluster's GPUs
   * @param sameNode the name of the request whose node it must share; empty for none
   */
  public Request onFleet(
      String name,
      int cpuMillis,
      MemorySize hostMemory,
      Set<String> nodes,
      Set<String> present,
      String sameNode) {
    Request.Builder request =
        Request.builder(name)
            .preemptionClass(preemptionClass)
            .memory(isWhole ? MemorySize.ZERO : memory)
            .memoryPercent(isWhole ? 0 : memoryPercent)
            .host(cpuMillis, hostMemory)
            .models(named(present))
            .spread(spread)
            .sameNodeAs(sameNode)
            .nodes(nodes);
    if (isWhole) {
      request.wholeGpus(gpus);
    } else if (sharePercent == 0) {
      request.bestEffort(gpus);
    } else {
      request.shares(gpus, sharePercent);
    }
    return request.build();
  }

  /**
   * {@return the same request for another number of GPUs}
   *
   * @param count how many
   */
  public PodRequest on(int count) {
    return copy(container, count);
  }

  /** {@return the same request for several containers, or init containers} */
  PodRequest withoutContainer() {
    return copy("", gpus);
  }

  private PodRequest copy(String newContainer, int count) {
    return new PodRequest(
        system,
        newContainer,
        count,
        sharePercent,
        isWhole,
        memory,
        memoryPercent,
        policy,
        preemptionClass,
        models,
        spread,
        sameNodeAs,
        runS,
        gang,
        resources);
  }

  /** {@return whether vgpu can give it: to one container that is no init container} */
  public boolean isOfOneContainer() {
    return !container.isEmpty();
  }

  /** {@return the acceptable models, by their full names if there are such GPUs} */
  private Set<String> named(Set<String> present) {
    Set<String> all = new HashSet<>();
    for (String part : models) {
      Set<String> full =
          present.stream()
              .filter(model -> words(model).contains(words(part)))
              .collect(Collectors.toSet());
      all.addAll(full.isEmpty() ? Set.of(part) : full);
    }
    return all;
  }

  /** {@return the letters and digits of a name, with a space around each word} */
  private static String words(String name) {
    return (" " + name + " ").toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", " ");
  }
}
