package dev.vgpu.samples.inference;

/** The one place that reads the clock. */
final class NanoClock {
  private NanoClock() {}

  /** {@return the nanoseconds since some fixed moment} */
  static long now() {
    return System.nanoTime();
  }
}
