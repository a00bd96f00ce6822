package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Waits for conditions. */
public final class Await {
  private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(45);
  private static final CountDownLatch NEVER = new CountDownLatch(1);

  private Await() {}

  /** Waits until a condition holds; fails if it never does. */
  public static void until(BooleanSupplier condition) throws InterruptedException {
    long endNs = NanoClock.nowNs() + TIMEOUT_NS;
    while (!condition.getAsBoolean()) {
      assertThat(NanoClock.nowNs()).as("waited for long").isLessThan(endNs);
      pause(10);
    }
  }

  /** Gives others the processor. */
  static void pause(long ms) throws InterruptedException {
    if (NEVER.await(ms, TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException("nobody counts it down");
    }
  }
}
