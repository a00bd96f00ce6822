package dev.vgpu.core.schedule;

/**
 * The clock by which the guarantees of a level accrue. It runs as the level's tenants use the GPU.
 * Time that passes without it is recorded, and is made up for as far as shares allow. Confined to
 * the scheduler's owner.
 *
 * <p>While tenants take surplus, the surplus pays for what floor turns took ({@code lostNs}). While
 * there are only fixed shares, the clock catches up as soon as all of them are at their cap ({@code
 * behindNs}). What is owed is carried over when the first taker comes and the last one leaves.
 */
final class LevelClock {
  /** How much of the time that floor turns took is remembered, until it is made up for. */
  private static final double LOST_MEMORY_NS = 1_000_000_000;

  private final SchedulerSettings settings;
  private double ns;

  /** How far the clock is behind the time in which the level could have had the GPU. */
  private double behindNs;

  /** Whether tenants differ in how much of {@link #behindNs} is their time. */
  private boolean differs;

  /** The part of {@link #behindNs} in which no tenant of the level was on the GPU. */
  private double spareNs;

  /** Time that floor turns took from the level, and that is not made up for yet. */
  private double lostNs;

  /** Time that has passed while there were takers, less what the clock has advanced since. */
  private double unclockedNs;

  /** Time since the GPU was last idle, less the use that was reported: no more can come late. */
  private double untoldNs;

  /** How much use from before there were takers may still be reported. */
  private double lateNs;

  /** Late use that the clock did not run for, as it had done so before. */
  private double cutNs;

  LevelClock(SchedulerSettings settings) {
    this.settings = settings;
  }

  double ns() {
    return ns;
  }

  /** Call this once no tenant has work. */
  void reset() {
    ns = 0;
    behindNs = 0;
    differs = false;
    spareNs = 0;
    lostNs = 0;
    lateNs = 0;
    cutNs = 0;
  }

  /**
   * Advances the clock while there are takers of surplus, and makes up for what floor turns took.
   * The surplus pays no faster than the floor takes: those who live on it keep the rest. The clock
   * never runs faster than time passes.
   *
   * @param usedNs time in which the GPU was used, as it was reported; negative if given back
   * @param serviceNs what the level's tenants used of it
   * @return how far it advanced
   */
  double advance(double usedNs, double serviceNs, double guaranteedSum) {
    double clockNs = withoutLate(usedNs);
    double floor = settings.offlineFloor();
    unclockedNs -= clockNs;
    double mostNs = floor < 1 ? clockNs * floor / (1 - floor) : lostNs;
    if (guaranteedSum > 0) {
      mostNs = Math.min(mostNs, serviceNs / guaranteedSum - clockNs);
    }
    double paidNs = Math.max(0, Math.min(mostNs, Math.min(lostNs, unclockedNs)));
    lostNs -= paidNs;
    unclockedNs -= paidNs;
    // Use from before there were takers may be reported only now; it must not count again later.
    behindNs -= Math.min(clockNs - serviceNs, Math.max(0, behindNs));
    ns += clockNs + paidNs;
    return clockNs + paidNs;
  }

  /**
   * Takes off late use if it exceeds the time that has not been clocked. Of use that is given back,
   * what was taken off is given back first.
   */
  private double withoutLate(double usedNs) {
    double leftNs = Math.max(0, Math.max(0, behindNs) + unclockedNs);
    double moreNs =
        usedNs > 0 ? Math.min(lateNs, Math.max(0, usedNs - leftNs)) : Math.max(usedNs, -cutNs);
    lateNs -= moreNs;
    cutNs += moreNs;
    return usedNs - moreNs;
  }

  /** Records that time passed while the GPU was not idle, and the use reported in it. */
  void told(double passedNs, double usedNs) {
    untoldNs = Math.max(0, untoldNs + passedNs - usedNs);
  }

  /** Records that the GPU is idle: all use has been reported. */
  void idle() {
    untoldNs = 0;
    lateNs = 0;
    cutNs = 0;
  }

  /**
   * Advances the clock while there are only fixed shares. Time that two tenants used at the same
   * moment is reported by both, but passes only once.
   *
   * @param isWhole whether gangs take time of the level that they do not use: then all of it counts
   */
  void advanceFixed(double clockNs, boolean isWhole) {
    double passedNs = isWhole ? clockNs : Math.min(clockNs, Math.max(0, behindNs));
    ns += passedNs;
    behindNs -= passedNs;
  }

  /** Records time that a floor turn took from the level. */
  void lost(double takenNs) {
    lostNs = Math.min(lostNs + takenNs, LOST_MEMORY_NS);
  }

  /** Records time in which the level could have had the GPU while there were takers of surplus. */
  void passed(double passedNs) {
    unclockedNs += passedNs;
  }

  /**
   * The same while there were only fixed shares.
   *
   * @param isActive whether a tenant of the level had the GPU, or was about to
   */
  void passedFixed(double passedNs, boolean isActive) {
    behindNs += passedNs;
    spareNs = isActive ? 0 : spareNs + passedNs;
  }

  double behindNs() {
    return behindNs;
  }

  /** Whether time of fixed shares has passed without the clock. */
  boolean isBehind() {
    return behindNs > 0 || differs;
  }

  /** Records that a tenant begins: the time by which the clock is behind is not its own. */
  void begin(Tenant tenant) {
    tenant.beforeNs = behindNs - tenant.lostNs;
    differs |= tenant.beforeNs != 0;
  }

  /**
   * How much of the tenant's own time has passed without the clock. Negative if the clock has
   * caught up with time in which the tenant was not there.
   */
  double ownNs(Tenant tenant) {
    return behindNs - tenant.beforeNs;
  }

  /**
   * How much more of the tenant's own time has passed than the clock has advanced by in catching
   * up; negative if less has. Time that the clock did not make up for is not added.
   */
  static double moreNs(Tenant tenant, double wasBehindNs, double advancedNs) {
    return tenant.beforeNs > 0
        ? Math.min(0, wasBehindNs - tenant.beforeNs - advancedNs)
        : -tenant.beforeNs;
  }

  /**
   * Makes up for the time that the clock is behind. Call this while only fixed shares have work and
   * all of them are at their cap: then there is time to spare. All time at the cap counts, and what
   * hand-overs and floor turns took is not taken off the shares.
   *
   * @return how far it advanced
   */
  double catchUp() {
    double takenNs = Math.max(0, behindNs - spareNs);
    double advancedNs = behindNs - takenNs + Math.min(takenNs, settings.memoryNs() + lostNs);
    ns += advancedNs;
    behindNs = 0;
    differs = false;
    spareNs = 0;
    lostNs = 0;
    return advancedNs;
  }

  /** Carries over what is owed: from now on, the surplus pays for it. */
  void takersCame() {
    lostNs = Math.min(lostNs, Math.max(0, behindNs));
    unclockedNs = lostNs;
    behindNs -= lostNs;
    lateNs = untoldNs;
    cutNs = 0;
  }

  /** Carries over what is owed: from now on, nobody takes surplus. */
  void takersLeft() {
    lostNs = Math.max(0, Math.min(lostNs, unclockedNs));
    unclockedNs = 0;
    behindNs += lostNs;
  }
}
