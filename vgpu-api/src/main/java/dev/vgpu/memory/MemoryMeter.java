package dev.vgpu.memory;

import dev.vgpu.VirtualGpu;
import java.nio.file.Path;

/** Measures the peak memory of one run. One measurement at a time. */
public interface MemoryMeter {
  /**
   * {@return a meter of the memory that the virtual GPU counts for this JVM, which must be under
   * it}
   *
   * @see VirtualGpu#attachThisJvm
   */
  static MemoryMeter ofAttached(VirtualGpu gpu) {
    return new AttachedMemoryMeter(gpu);
  }

  /** {@return a meter of this process's resident memory} */
  static MemoryMeter ofThisProcess() {
    return new ResidentMemoryMeter(Path.of("/proc/self/status"), Path.of("/proc/self/clear_refs"));
  }

  /** Called when the model is loaded: memory allocated from now on belongs to runs. */
  void loaded();

  /** Begins a measurement. */
  void begin();

  /**
   * {@return the peak in bytes since {@link #begin()}; below 0 if nothing counts the memory, so
   * that nothing can be learnt}
   */
  long peakBytes();
}
