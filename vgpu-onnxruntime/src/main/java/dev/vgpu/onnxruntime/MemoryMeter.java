package dev.vgpu.onnxruntime;

/** Measures the peak memory of one run. One measurement at a time. */
interface MemoryMeter {
  /** Called when the model is loaded: memory allocated from now on belongs to runs. */
  void loaded();

  /** Begins a measurement. */
  void begin();

  /** {@return the peak in bytes since {@link #begin()}; 0 if it cannot be measured} */
  long peakBytes();
}
