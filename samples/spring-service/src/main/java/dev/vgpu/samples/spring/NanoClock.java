package dev.vgpu.samples.spring;

/** The only class that reads the clock. */
final class NanoClock {
  private NanoClock() {}

  /** {@return the nanoseconds since some fixed moment} */
  static long now() {
    return System.nanoTime();
  }
}
