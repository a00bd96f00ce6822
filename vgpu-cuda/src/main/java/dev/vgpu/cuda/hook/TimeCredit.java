package dev.vgpu.cuda.hook;

/**
 * Limits the GPU time that a lease can have used since the last reading: no more than the time that
 * has passed, both in total and since the lease was last idle. So a process cannot claim many idle
 * hours at once. Guarded by the lease's lock.
 *
 * <p>A look at the page may see that work has ended before its GPU time is reported. So the second
 * of two idle looks settles only the time before the first.
 */
final class TimeCredit {
  /** Tolerance: a reading is not taken exactly at its stated time. */
  private static final long SLACK_NS = 2_000_000;

  private static final long NEVER = Long.MIN_VALUE;

  private final long beganNs;
  private long usedNs;
  private long idleSeenNs = NEVER;
  private long settledNs = NEVER;
  private long settledUsedNs;

  /**
   * Starts with nothing used.
   *
   * @param beganNs GPU time is credited from here on
   */
  TimeCredit(long beganNs) {
    this.beganNs = beganNs;
  }

  /** {@return the most that can be credited now, in nanoseconds; not below 0} */
  long limitNs(long nowNs) {
    long all = nowNs - beganNs - usedNs;
    if (settledNs == NEVER) {
      return Math.max(0, all);
    }
    long sinceIdle = nowNs - settledNs + SLACK_NS - (usedNs - settledUsedNs);
    return Math.max(0, Math.min(all, sinceIdle));
  }

  /** Adds GPU time that was credited. */
  void used(long ns) {
    usedNs += ns;
  }

  /** Notes a look, idle or not, after which all readings were credited. */
  void looked(boolean idle, long nowNs) {
    if (!idle) {
      idleSeenNs = NEVER;
      return;
    }
    if (idleSeenNs != NEVER) {
      settledNs = idleSeenNs;
      settledUsedNs = usedNs;
    }
    idleSeenNs = nowNs;
  }
}
