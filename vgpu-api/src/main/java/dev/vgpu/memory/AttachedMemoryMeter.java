package dev.vgpu.memory;

import dev.vgpu.VirtualGpu;

/**
 * Measures by the allocations that the virtual GPU counts for this JVM. The engine's arena keeps
 * the memory that a run took. So the memory that the JVM holds after a run, without the weights, is
 * at least the run's peak.
 */
final class AttachedMemoryMeter implements MemoryMeter {
  private final VirtualGpu gpu;
  private volatile long loadedBytes;

  AttachedMemoryMeter(VirtualGpu gpu) {
    this.gpu = gpu;
    this.loadedBytes = usedBytes();
  }

  private long usedBytes() {
    return gpu.usage().memoryUsed().bytes();
  }

  @Override
  public void loaded() {
    loadedBytes = usedBytes();
  }

  @Override
  public void begin() {}

  @Override
  public long peakBytes() {
    return Math.max(0, usedBytes() - loadedBytes);
  }
}
