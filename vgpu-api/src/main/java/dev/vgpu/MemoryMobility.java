package dev.vgpu;

/** Whether the memory of a virtual GPU's programs can leave the GPU while they are suspended. */
public enum MemoryMobility {
  /** It is left to the driver, which moves whole processes, where it can. */
  FIXED,

  /**
   * The hook moves single allocations, the largest first, until enough has gone; it needs no help
   * of the driver but virtual memory management. Memory of {@code cuMemAlloc} is then taken in
   * whole pages of the GPU (2 MiB), is charged so, and cannot be shared with other processes.
   */
  MOVABLE
}
