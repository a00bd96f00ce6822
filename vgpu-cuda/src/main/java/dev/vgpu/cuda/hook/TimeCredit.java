package dev.vgpu.cuda.hook;

/**
 * How much GPU time a lease can have used since it was last read: no more than time has passed, in
 * all and since it was last idle. So nobody can claim in one lump what idle hours would have held.
 * Guarded by the lease's lock.
 *
 * <p>A look at the page may see that work has ended and not yet what it used. So only what lies
 * before the first of two idle looks is settled by the second.
 */
final class TimeCredit {
  /** Readings are not taken at the very time that they are said to be of. */
  private static final long SLACK_NS = 2_000_000;

  private static final long NEVER = Long.MIN_VALUE;

  private final long beganNs;
  private long usedNs;
  private long idleSeenNs = NEVER;
  private long settledNs = NEVER;
  private long settledUsedNs;

  /**
   * Makes it.
   *
   * @param beganNs from when on GPU time is credited
   */
  TimeCredit(long beganNs) {
    this.beganNs = beganNs;
  }

  /** {@return what can be credited at most, in nanoseconds; not below 0} */
  long limitNs(long nowNs) {
    long all = nowNs - beganNs - usedNs;
    if (settledNs == NEVER) {
      return Math.max(0, all);
    }
    long sinceIdle = nowNs - settledNs + SLACK_NS - (usedNs - settledUsedNs);
    return Math.max(0, Math.min(all, sinceIdle));
  }

  /** So much was credited. */
  void used(long ns) {
    usedNs += ns;
  }

  /** Everything that is read was credited; whether the lease has nothing on the GPU. */
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
