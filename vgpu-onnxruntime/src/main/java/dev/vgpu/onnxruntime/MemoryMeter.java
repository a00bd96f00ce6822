package dev.vgpu.onnxruntime;

/** Measures what one run takes at its peak. One measurement at a time. */
interface MemoryMeter {
  /** The model is loaded: what is taken from now on is taken by runs. */
  void loaded();

  /** A measurement begins. */
  void begin();

  /**
   * {@return the bytes that were taken at the peak since {@link #begin()}; 0 if that cannot be
   * told}
   */
  long peakBytes();
}
