package dev.vgpu.watch;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.Optional;

/**
 * What virtual GPUs are cut from: a device, a MIG compute instance, an emulated device, or this
 * machine's CPU. Immutable and safe for use by several threads. Providers implement it; it may gain
 * methods with defaults.
 */
public interface PhysicalGpu {
  /** {@return its name, stable across restarts} */
  GpuId id();

  /** {@return its model name for people, for example {@code NVIDIA H200}} */
  String model();

  /** {@return its total memory} */
  MemorySize memory();

  /** {@return the memory available to quotas: the part that the driver leaves free} */
  MemorySize usableMemory();

  /** {@return the name of the provider that found it, for example {@code nvml} or {@code host}} */
  String provider();

  /**
   * {@return why no work can run on it as a whole, for example because its MIG mode is on; empty if
   * work can} Such a GPU can only be used through a backend that cuts spatial parts from it.
   */
  default Optional<String> unusableAsWhole() {
    return Optional.empty();
  }
}
