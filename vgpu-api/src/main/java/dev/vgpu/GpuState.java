package dev.vgpu;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * How one GPU is shared, read at one moment. Immutable. May gain methods.
 *
 * @see GpuPool#states()
 */
public interface GpuState {
  /** {@return the GPU} */
  GpuId gpu();

  /** {@return how its tenants share it now} */
  SharingMode mode();

  /** {@return why they share it so, in words for people; never empty} */
  String reason();

  /** {@return the {@link VirtualGpu#id()} of the tenant that has the turn, if one has} */
  Optional<String> holder();

  /** {@return the {@link VirtualGpu#id()}s of those that have work and are above their share} */
  List<String> heldBack();

  /** {@return the length of a turn as it is now} */
  Duration turnLength();

  /** {@return the memory that quotas may take and that is free now} */
  MemorySize memoryFree();

  /** {@return below how much free memory reclaim begins; 0: it does not} */
  MemorySize memoryLowWatermark();

  /** {@return with how much free memory reclaim ends} */
  MemorySize memoryHighWatermark();

  /**
   * {@return the {@link VirtualGpu#id()}s of the virtual GPUs whose processes are suspended for
   * memory}
   */
  List<String> suspended();

  /** {@return how many turns have begun since the seat was taken} */
  long switches();

  /** {@return whether the GPU answers, as the process that has the seat sees it} */
  default GpuHealth health() {
    return GpuHealth.HEALTHY;
  }

  /** {@return why it is not healthy, in words; empty if it is} */
  default String healthReason() {
    return "";
  }
}
