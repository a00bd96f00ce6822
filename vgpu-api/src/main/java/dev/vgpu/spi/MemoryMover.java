package dev.vgpu.spi;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.request.MemorySize;
import java.time.Duration;

/**
 * Moves memory of a lease's processes to host memory and back to the same addresses. The lease is
 * shut and none of its work runs meanwhile. Safe for use by several threads, one at a time.
 */
public interface MemoryMover {
  /**
   * Moves memory out, largest allocations first. Blocks until it is done.
   *
   * @param atLeast how much to move from each process, limited to its movable memory
   * @param timeout how long the move may take
   * @throws GpuSuspendException if the move failed or timed out; part of the memory may have been
   *     moved, and nothing is lost
   */
  void moveOut(MemorySize atLeast, Duration timeout);

  /**
   * Moves all memory back. Blocks until it is done.
   *
   * @param timeout how long the move may take
   * @throws GpuSuspendException if there is no room, or not in time; part of the memory may have
   *     been moved, and nothing is lost
   */
  void moveBack(Duration timeout);

  /** {@return how much memory is in host memory now} */
  MemorySize moved();
}
