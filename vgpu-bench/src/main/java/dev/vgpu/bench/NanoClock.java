package dev.vgpu.bench;

/** The only place of this module that reads the clock. */
final class NanoClock {
  private NanoClock() {}

  static long nanoTime() {
    return System.nanoTime();
  }
}
