package dev.vgpu.k8s.node.holding;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The requested properties of one virtual GPU of a container. Immutable.
 *
 * @param gpus the GPUs that the scheduler chose; at least one, all different
 * @param part the part of the GPU in MIG mode, {@code PROFILE:START}; empty for a shared GPU
 * @param sharePercent 1 to 100; of each GPU; empty for best effort, and only then
 * @param memory the quota on each GPU; above 0
 * @param policy how the share binds
 * @param preemptionClass the class
 * @param isolation whether another tenant's crash may affect it
 * @param compute how strictly the share must bind at least
 */
public record Terms(
    List<GpuId> gpus,
    Optional<String> part,
    OptionalInt sharePercent,
    MemorySize memory,
    SharePolicy policy,
    PreemptionClass preemptionClass,
    Capabilities.FaultIsolation isolation,
    Capabilities.Compute compute) {
  /** Copies the list, and checks the combination as the pool would. */
  public Terms {
    gpus = List.copyOf(gpus);
    VirtualGpuRequest ignored =
        request(
            "check", gpus, part, sharePercent, memory, policy, preemptionClass, isolation, compute);
  }

  /**
   * {@return the pool's request}
   *
   * @param name the tenant's name
   */
  public VirtualGpuRequest request(String name) {
    return request(
        name, gpus, part, sharePercent, memory, policy, preemptionClass, isolation, compute);
  }

  private static VirtualGpuRequest request(
      String name,
      List<GpuId> gpus,
      Optional<String> part,
      OptionalInt sharePercent,
      MemorySize memory,
      SharePolicy policy,
      PreemptionClass preemptionClass,
      Capabilities.FaultIsolation isolation,
      Capabilities.Compute compute) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .name(name)
            .gpus(gpus)
            .memory(memory)
            .policy(policy)
            .preemptionClass(preemptionClass)
            .require(Capabilities.Memory.EXACT)
            .require(Capabilities.Scope.CONTAINER)
            .require(isolation)
            .require(compute);
    part.ifPresent(builder::part);
    sharePercent.ifPresent(builder::computePercent);
    return builder.build();
  }
}
