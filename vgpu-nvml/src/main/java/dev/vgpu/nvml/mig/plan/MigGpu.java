package dev.vgpu.nvml.mig.plan;

import dev.vgpu.request.GpuId;
import java.util.List;

/**
 * A GPU in MIG mode, with its current instances. Immutable.
 *
 * @param id the GPU's
 * @param geometry how it can be partitioned
 * @param instances its current instances
 */
public record MigGpu(GpuId id, MigGeometry geometry, List<MigInstance> instances) {
  /** Copies the list. */
  public MigGpu {
    instances = List.copyOf(instances);
  }

  /** {@return what is taken} */
  public MigOccupancy occupancy() {
    return occupancy(geometry, instances);
  }

  /** {@return this GPU without some of its instances} */
  MigGpu without(List<MigInstance> gone) {
    return new MigGpu(
        id, geometry, instances.stream().filter(each -> !gone.contains(each)).toList());
  }

  /** {@return what instances take} */
  static MigOccupancy occupancy(MigGeometry geometry, List<MigInstance> instances) {
    int mask = 0;
    int compute = 0;
    boolean media = false;
    for (MigInstance instance : instances) {
      mask |= ((1 << instance.memorySlices()) - 1) << instance.start();
      compute += instance.computeSlices();
      media |= geometry.profile(instance.profileId()).filter(MigProfile::hasMedia).isPresent();
    }
    return new MigOccupancy(mask & ((1 << geometry.memorySlices()) - 1), compute, media);
  }
}
