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
    long used = usedBytes();
    return used == 0 ? -1 : Math.max(0, used - loadedBytes); // 0: the JVM is not under it
  }
}
