package dev.vgpu.dashboard;

import java.time.Instant;

/** The only place of this module that reads a clock; tests supply their own. */
final class NanoClock {
  private NanoClock() {}

  /** {@return nanoseconds since an arbitrary moment; never decreases} */
  static long nowNs() {
    return System.nanoTime();
  }

  /** {@return the time of day} */
  static Instant now() {
    return Instant.now();
  }
}
