package dev.vgpu.watch;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * How one GPU is shared, read at one moment. Immutable. May gain methods.
 *
 * @see dev.vgpu.GpuPool#states()
 */
public interface GpuState {
  /** {@return the GPU} */
  GpuId gpu();

  /** {@return how its tenants share it now} */
  SharingMode mode();

  /** {@return why they share it this way, in words for people; never empty} */
  String reason();

  /**
   * {@return the {@link dev.vgpu.VirtualGpu#id()} of the tenant that has the turn; empty if none
   * has}
   */
  Optional<String> holder();

  /**
   * {@return the {@link dev.vgpu.VirtualGpu#id()}s of the tenants that have work and are at their
   * fixed share} Only such tenants are held back.
   */
  List<String> heldBack();

  /** {@return the current length of a turn} */
  Duration turnLength();

  /** {@return the memory that is available to quotas and free now} */
  MemorySize memoryFree();

  /** {@return the free memory below which reclaim starts; 0 means never} */
  MemorySize memoryLowWatermark();

  /** {@return the free memory at which reclaim stops} */
  MemorySize memoryHighWatermark();

  /**
   * {@return the {@link dev.vgpu.VirtualGpu#id()}s of the virtual GPUs whose processes are
   * suspended for memory}
   */
  List<String> suspended();

  /** {@return how many turns have begun since the seat was taken} */
  long switches();

  /** {@return the GPU's health, as seen by the process that holds the seat} */
  default GpuHealth health() {
    return GpuHealth.HEALTHY;
  }

  /** {@return why it is not healthy, in words; empty if it is} */
  default String healthReason() {
    return "";
  }
}
