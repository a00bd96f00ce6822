package dev.vgpu.k8s.scheduler;

import java.util.function.DoubleSupplier;

/** This machine's monotonic clock. */
final class NanoClock {
  private static final double NANO = 1e-9;

  private NanoClock() {}

  /** {@return seconds on a monotonic clock; its zero is arbitrary} */
  static DoubleSupplier seconds() {
    return () -> System.nanoTime() * NANO;
  }
}
