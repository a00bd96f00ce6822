package dev.vgpu.core.wire;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import java.util.List;
import java.util.Optional;

/**
 * A snapshot of a {@link GpuLease}.
 *
 * @param id the virtual GPU's name
 * @param gpus the GPUs that it was cut from, at least one
 * @param request what was granted
 * @param pid the process that holds it
 * @param entitledPercent the percent of GPU time that it is entitled to
 * @param processes the processes under it
 * @param usage its usage so far
 * @param suspended whether its processes are suspended
 * @param memorySuspended the part of their memory that was moved to the host
 * @param backend the backend that enforces it, or will
 * @param impaired why its enforcement cannot be relied on
 * @param passedThrough the number of calls passed through unhandled
 * @param preemption where its programs can be preempted now
 * @param preemptionReason why they cannot be preempted inside a kernel
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
   * Creates a snapshot of a lease that is not suspended, not impaired, and has no chosen backend.
   *
   * @param id the virtual GPU's name
   * @param gpus the GPUs that it was cut from, at least one
   * @param request what was granted
   * @param pid the process that holds it
   * @param entitledPercent the percent of GPU time that it is entitled to
   * @param processes the processes under it
   * @param usage its usage so far
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
