package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.Optional;
import java.util.Set;

/**
 * What a pod requests of GPUs in one system's vocabulary. Immutable.
 *
 * @param system the system
 * @param container the container that requests GPUs
 * @param gpus how many GPUs of one node
 * @param sharePercent the share of each GPU, 1 to 100; 0 if none is guaranteed, or the GPUs are
 *     whole
 * @param isWhole whether the GPUs are exclusive
 * @param memory the least memory on each GPU; zero if {@code memoryPercent} applies
 * @param memoryPercent the least part of each card's memory, 0 to 100 percent
 * @param policy how the share binds, if stated
 * @param preemptionClass the class, if stated
 * @param models the acceptable GPU models; empty for any
 */
record GpuPart(
    String system,
    String container,
    int gpus,
    int sharePercent,
    boolean isWhole,
    MemorySize memory,
    double memoryPercent,
    Optional<SharePolicy> policy,
    Optional<PreemptionClass> preemptionClass,
    Set<String> models) {
  GpuPart {
    models = Set.copyOf(models);
  }

  static GpuPart whole(String system, String container, int gpus) {
    return new GpuPart(
        system,
        container,
        gpus,
        0,
        true,
        MemorySize.ZERO,
        0,
        Optional.empty(),
        Optional.empty(),
        Set.of());
  }

  static GpuPart shared(
      String system,
      String container,
      int gpus,
      int sharePercent,
      MemorySize memory,
      double memoryPercent) {
    return new GpuPart(
        system,
        container,
        gpus,
        sharePercent,
        false,
        memory,
        memoryPercent,
        Optional.empty(),
        Optional.empty(),
        Set.of());
  }

  GpuPart with(SharePolicy newPolicy) {
    return new GpuPart(
        system,
        container,
        gpus,
        sharePercent,
        isWhole,
        memory,
        memoryPercent,
        Optional.of(newPolicy),
        preemptionClass,
        models);
  }

  GpuPart with(PreemptionClass newClass) {
    return new GpuPart(
        system,
        container,
        gpus,
        sharePercent,
        isWhole,
        memory,
        memoryPercent,
        policy,
        Optional.of(newClass),
        models);
  }

  GpuPart withModels(Set<String> names) {
    return new GpuPart(
        system,
        container,
        gpus,
        sharePercent,
        isWhole,
        memory,
        memoryPercent,
        policy,
        preemptionClass,
        names);
  }
}
