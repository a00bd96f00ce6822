package dev.vgpu.k8s.scheduler;

import java.util.function.DoubleSupplier;

/** This machine's clock. */
final class NanoClock {
  private static final double NANO = 1e-9;

  private NanoClock() {}

  /** {@return seconds of a clock that never goes back; its zero means nothing} */
  static DoubleSupplier seconds() {
    return () -> System.nanoTime() * NANO;
  }
}
