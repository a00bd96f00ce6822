package dev.vgpu.samples.cuda;

/** The only class that reads the clock. */
final class NanoClock {
  private NanoClock() {}

  static long nowNs() {
    return System.nanoTime();
  }
}
