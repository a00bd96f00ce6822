package dev.vgpu.spi;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.MemorySize;
import java.time.Duration;

/**
 * Moves the memory of a lease's processes to the host's and back, at its addresses, while the lease
 * is shut and nothing of it runs. Safe for use by several threads, one at a time.
 */
public interface MemoryMover {
  /**
   * Moves memory out, the largest allocations first. Blocks until it is done.
   *
   * @param atLeast how much of each process, at most its movable memory
   * @param timeout how long it may take
   * @throws GpuSuspendException if it could not, or not in time; a part may have been moved, and
   *     nothing is lost
   */
  void moveOut(MemorySize atLeast, Duration timeout);

  /**
   * Moves all memory back. Blocks until it is done.
   *
   * @param timeout how long it may take
   * @throws GpuSuspendException if there is no room, or not in time; a part may have been moved,
   *     and nothing is lost
   */
  void moveBack(Duration timeout);

  /** {@return how much is in the host's memory now} */
  MemorySize moved();
}
