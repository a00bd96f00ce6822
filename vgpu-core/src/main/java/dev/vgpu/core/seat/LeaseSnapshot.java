package dev.vgpu.core.seat;

import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuUsage;
import dev.vgpu.VirtualGpuRequest;
import java.util.List;

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
 */
public record LeaseSnapshot(
    String id,
    List<GpuId> gpus,
    VirtualGpuRequest request,
    long pid,
    double entitledPercent,
    List<Long> processes,
    GpuUsage usage)
    implements GpuLease {
  @Override
  public GpuId gpu() {
    return gpus.get(0);
  }
}
