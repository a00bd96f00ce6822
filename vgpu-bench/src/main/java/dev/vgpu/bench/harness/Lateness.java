package dev.vgpu.bench.harness;

/** How much time the machine takes from those who would run. */
@FunctionalInterface
public interface Lateness {
  /** None that is known of. */
  Lateness NONE = sinceNs -> 0;

  /**
   * {@return by how much threads ran later than they were ready to, in milliseconds, in all}
   *
   * @param sinceNs from when on, as {@link NanoClock#nanoTime} tells it
   * @throws InterruptedException if this thread is interrupted
   */
  double lateMs(long sinceNs) throws InterruptedException;
}
