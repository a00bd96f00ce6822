package dev.vgpu.core.wire;

import dev.vgpu.Capabilities;
import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuUsage;
import dev.vgpu.MemorySize;
import dev.vgpu.VirtualGpuRequest;
import java.util.List;
import java.util.Optional;

/**
 * A {@link GpuLease} as it was at one moment.
 *
 * @param id the virtual GPU's name
 * @param gpus the GPUs that it was cut from, at least one
 * @param request what was granted
 * @param pid who holds it
 * @param entitledPercent of the GPU's time
 * @param processes under it
 * @param usage until then
 * @param suspended whether its processes are
 * @param memorySuspended what of their memory is in the host's
 * @param backend what enforces it, or will
 * @param impaired why it cannot be relied on
 * @param passedThrough calls that are let through unhandled
 * @param preemption where its programs can be interrupted now
 * @param preemptionReason why not inside a kernel
 */
public record LeaseSnapshot(
    String id,
    List<GpuId> gpus,
    VirtualGpuRequest request,
    long pid,
    double entitledPercent,
    List<Long> processes,
    GpuUsage usage,
    boolean suspended,
    MemorySize memorySuspended,
    Optional<String> backend,
    Optional<String> impaired,
    long passedThrough,
    Optional<Capabilities.Preemption> preemption,
    Optional<String> preemptionReason)
    implements GpuLease {
  /**
   * Makes one that is not suspended, and for which no backend is chosen, and of which nothing is
   * wrong.
   *
   * @param id the virtual GPU's name
   * @param gpus the GPUs that it was cut from, at least one
   * @param request what was granted
   * @param pid who holds it
   * @param entitledPercent of the GPU's time
   * @param processes under it
   * @param usage until then
   */
  public LeaseSnapshot(
      String id,
      List<GpuId> gpus,
      VirtualGpuRequest request,
      long pid,
      double entitledPercent,
      List<Long> processes,
      GpuUsage usage) {
    this(
        id,
        gpus,
        request,
        pid,
        entitledPercent,
        processes,
        usage,
        false,
        MemorySize.ZERO,
        Optional.empty(),
        Optional.empty(),
        0,
        Optional.empty(),
        Optional.empty());
  }

  @Override
  public boolean isSuspended() {
    return suspended;
  }

  @Override
  public GpuId gpu() {
    return gpus.get(0);
  }
}
