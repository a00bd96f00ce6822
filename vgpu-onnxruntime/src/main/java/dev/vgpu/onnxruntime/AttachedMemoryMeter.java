package dev.vgpu.onnxruntime;

import dev.vgpu.VirtualGpu;

/**
 * By what the virtual GPU counts of this JVM's allocations. ONNX Runtime's arena keeps what a run
 * took, so what the JVM holds after a run, without the weights, is no less than the run's peak.
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
