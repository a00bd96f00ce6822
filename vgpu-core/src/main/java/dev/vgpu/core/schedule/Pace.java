package dev.vgpu.core.schedule;

/**
 * How fast a tenant launches kernels: in its own turns, and while other gates are open too.
 * Confined to the scheduler's owner.
 */
final class Pace {
  /** The time of turns over which the pace is averaged. */
  private static final double MEMORY_NS = 200_000_000;

  /** The time of turns, and the number of launches in them, from which on the pace is known. */
  private static final double LEAST_NS = 20_000_000;

  private static final double LEAST_LAUNCHES = 20;

  private static final long NONE = Long.MIN_VALUE;

  /** The time of recent turns, and the launches in them. */
  private double turnsNs;

  private double turnsLaunches;

  /** The turn that is going on, or the last one, whose launches may not all be reported yet. */
  private long turnBeganNs = NONE;

  private long turnFirst;
  private double turnNs;

  /** Since the last look: the time beside others, and the launches in it. */
  private double besideNs;

  private double besideLaunches;

  /** Its launches when it was last alone, or at the last look; not meaningful while alone. */
  private long besideFirst;

  private boolean alone;

  /**
   * Records the beginning of a turn while other tenants wait.
   *
   * @param launches the tenant's launches so far
   */
  void turnBegan(long launches, long nowNs) {
    if (turnNs > 0 && launches >= turnFirst) {
      double keep = Math.max(0, 1 - turnNs / MEMORY_NS);
      turnsNs = keep * turnsNs + turnNs;
      turnsLaunches = keep * turnsLaunches + (launches - turnFirst);
    }
    turnBeganNs = nowNs;
    turnFirst = launches;
    turnNs = 0;
  }

  /** Records the end of a turn in which the tenant had work all the time. */
  void turnEnded(long nowNs) {
    turnNs = turnBeganNs == NONE ? 0 : nowNs - turnBeganNs;
    turnBeganNs = NONE;
  }

  /** Forgets the latest turn: the tenant may have been idle in it without reporting that. */
  void turnForgotten() {
    turnBeganNs = NONE;
    turnNs = 0;
  }

  /** Whether its pace in its own turns is known. */
  boolean isKnown() {
    return turnsNs >= LEAST_NS && turnsLaunches >= LEAST_LAUNCHES;
  }

  /** Begins to count its launches beside others. */
  void looked(long launches) {
    turnForgotten();
    besideNs = 0;
    besideLaunches = 0;
    besideFirst = launches;
    alone = false;
  }

  /** Records that it had work and an open gate beside others. */
  void passed(double passedNs) {
    besideNs += passedNs;
  }

  boolean isAlone() {
    return alone;
  }

  /** Does not count its launches from here on: no other tenant has work. */
  void isAlone(long launches) {
    if (!alone) {
      besideLaunches += launches - besideFirst;
      alone = true;
    }
  }

  /** Counts its launches again. */
  void isBeside(long launches) {
    besideFirst = launches;
    alone = false;
  }

  /** For how long it has had work beside others since the last look. */
  double besideNs() {
    return besideNs;
  }

  /** Its pace beside others since the last look, as a part of that in its own turns. */
  double kept(long launches) {
    double all = besideLaunches + (alone ? 0 : launches - besideFirst);
    return all / besideNs / (turnsLaunches / turnsNs);
  }
}
