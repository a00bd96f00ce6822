package dev.vgpu.request;

/** Whether the memory of a virtual GPU's programs can leave the GPU while they are suspended. */
public enum MemoryMobility {
  /** Suspension is left to the driver, which moves whole processes if it can. */
  FIXED,

  /**
   * The hook moves single allocations, largest first, until enough memory is free. It needs nothing
   * of the driver but virtual memory management. Memory from {@code cuMemAlloc} is then allocated
   * and charged in whole GPU pages (2 MiB), and cannot be shared with other processes.
   */
  MOVABLE
}
