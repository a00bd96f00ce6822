package dev.vgpu;

import dev.vgpu.request.MemorySize;

/**
 * Memory set aside out of a virtual GPU's quota, for example for the weights of a loaded model.
 * Safe for use by several threads.
 */
public interface MemoryReservation extends AutoCloseable {
  /** {@return the amount set aside} */
  MemorySize size();

  /** Gives the memory back to the quota. A second call does nothing. */
  @Override
  void close();
}
