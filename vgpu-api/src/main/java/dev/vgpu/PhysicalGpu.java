package dev.vgpu;

import java.util.Optional;

/**
 * A device, a MIG compute instance, an emulated device, or this machine's CPU: what virtual GPUs
 * are cut from. Immutable and safe for use by several threads. Providers implement it; it may gain
 * methods with defaults.
 */
public interface PhysicalGpu {
  /** {@return its name, stable over restarts} */
  GpuId id();

  /** {@return its name for people, for example {@code NVIDIA H200}} */
  String model();

  /** {@return all the memory that it has} */
  MemorySize memory();

  /** {@return the memory that quotas may take together: the part that the driver leaves free} */
  MemorySize usableMemory();

  /** {@return the name of the provider that found it, for example {@code nvml} or {@code host}} */
  String provider();

  /**
   * {@return why no work can run on it as a whole, for example since its MIG mode is on; empty if
   * work can} Only what cuts parts of their own from it, in space, can serve it then.
   */
  default Optional<String> unusableAsWhole() {
    return Optional.empty();
  }
}
