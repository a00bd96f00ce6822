package dev.vgpu.bench.harness;

/** How much time the machine takes from runnable threads. */
@FunctionalInterface
public interface Lateness {
  /** No known lateness. */
  Lateness NONE = sinceNs -> 0;

  /**
   * {@return how much later than they were ready threads ran, in total, in milliseconds}
   *
   * @param sinceNs the start of the period, in {@link NanoClock#nanoTime}
   * @throws InterruptedException if this thread is interrupted
   */
  double lateMs(long sinceNs) throws InterruptedException;
}
