package dev.vgpu.bench.harness;

import java.time.Instant;

/** This module's only access to the clock, and its only way to sleep. */
public final class NanoClock {
  private NanoClock() {}

  /** {@return nanoseconds since an arbitrary moment} */
  public static long nanoTime() {
    return System.nanoTime();
  }

  /** {@return the current time} */
  public static Instant now() {
    return Instant.now();
  }

  /**
   * Waits.
   *
   * @param millis how long
   * @throws InterruptedException if this thread is interrupted
   */
  public static void sleepMillis(long millis) throws InterruptedException {
    Thread.sleep(millis);
  }

  /**
   * Waits for a fraction of a millisecond, or a few of them.
   *
   * @param micros how long
   * @throws InterruptedException if this thread is interrupted
   */
  public static void sleepMicros(long micros) throws InterruptedException {
    Thread.sleep(micros / 1_000, (int) (micros % 1_000 * 1_000));
  }
}
