package dev.vgpu.k8s.time;

import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.function.DoubleSupplier;

/** This machine's clocks. */
public final class NanoClock {
  private static final double NANO = 1e-9;

  private NanoClock() {}

  /** {@return seconds on a monotonic clock; its zero is arbitrary} */
  public static DoubleSupplier seconds() {
    return () -> System.nanoTime() * NANO;
  }

  /** {@return the time of day, which may be wrong} */
  public static ZonedDateTime wall() {
    return ZonedDateTime.now(ZoneOffset.UTC);
  }
}
