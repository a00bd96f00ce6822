package dev.vgpu.k8s.scheduler;

import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.function.DoubleSupplier;

/** This machine's clocks. */
final class NanoClock {
  private static final double NANO = 1e-9;

  private NanoClock() {}

  /** {@return seconds on a monotonic clock; its zero is arbitrary} */
  static DoubleSupplier seconds() {
    return () -> System.nanoTime() * NANO;
  }

  /** {@return the time of day, which may be wrong} */
  static ZonedDateTime wall() {
    return ZonedDateTime.now(ZoneOffset.UTC);
  }
}
