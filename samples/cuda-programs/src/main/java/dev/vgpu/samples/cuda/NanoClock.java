package dev.vgpu.samples.cuda;

/** The one place that reads the clock. */
final class NanoClock {
  private NanoClock() {}

  static long nowNs() {
    return System.nanoTime();
  }
}
