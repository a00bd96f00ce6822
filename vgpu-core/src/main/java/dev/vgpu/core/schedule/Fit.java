package dev.vgpu.core.schedule;

/**
 * Whether tenants that pause between their kernels fit on the GPU together, so that turns would
 * only cost them time. Confined to the scheduler's owner.
 *
 * <p>They may fit if they use no more than {@link #MOST_USE} of the GPU together, each in its own
 * turns. Launch-bound GPU time does not count: it is mostly gaps between kernels, of unknown
 * length. So their gates are opened together for a trial. It goes on as long as each tenant
 * launches more than in its turns: at least {@link #LEAST_GAIN} times its part of what it launches
 * while it has the GPU to itself.
 */
final class Fit {
  private static final double MOST_USE = 0.9;

  private static final double LEAST_GAIN = 1.05;

  /** Programs' own pace varies: after a success, so many looks in a row must find too little. */
  private static final int MOST_MISSES = 2;

  /** The length of a trial, and of each later look. */
  private static final long TRIAL_NS = 50_000_000;

  private static final long SHORTEST_RESPITE_NS = 200_000_000;
  private static final long LONGEST_RESPITE_NS = 12_800_000_000L;

  /** After a success of this length, the next failure is followed by the shortest respite again. */
  private static final long LASTING_NS = 1_000_000_000;

  private final ShareLevel level;

  private boolean on;
  private int misses;
  private long onSinceNs;
  private long lookNs;
  private long respiteNs = SHORTEST_RESPITE_NS;
  private long againNs = Long.MIN_VALUE;

  Fit(ShareLevel level) {
    this.level = level;
  }

  /** Call this once all tenants have left. */
  void reset() {
    on = false;
    respiteNs = SHORTEST_RESPITE_NS;
    againNs = Long.MIN_VALUE;
  }

  /** Whether gates are open together for this reason. */
  boolean isOn() {
    return on;
  }

  /** When to look again at the latest; meaningful while on. */
  long lookNs() {
    return lookNs;
  }

  /** Ends it: the level is not allowed to share, or shares anyway. */
  void end() {
    on = false;
  }

  /** Decides whether it is on. The level has several tenants, and all may overlap. */
  void decide(long nowNs) {
    if (!on) {
      if (nowNs >= againNs && isKnown() && mayFit()) {
        on = true;
        misses = MOST_MISSES - 1;
        onSinceNs = nowNs;
        look(nowNs);
      }
      return;
    }
    if (!isKnown()) {
      on = false;
      return;
    }
    beside();
    if (nowNs < lookNs) {
      return;
    }
    misses = isWorth() ? 0 : misses + 1;
    if (misses < MOST_MISSES) {
      respiteNs = nowNs - onSinceNs >= LASTING_NS ? SHORTEST_RESPITE_NS : respiteNs;
      look(nowNs);
    } else {
      on = false;
      againNs = nowNs + respiteNs;
      respiteNs = Math.min(2 * respiteNs, LONGEST_RESPITE_NS);
    }
  }

  /** Records that one tenant has work: what it does then is not judged. */
  void alone() {
    if (on) {
      Tenant tenant = level.member(0);
      tenant.pace.isAlone(tenant.gate.work().launches());
    }
  }

  private void beside() {
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (tenant.pace.isAlone()) {
        tenant.pace.isBeside(tenant.gate.work().launches());
      }
    }
  }

  private void look(long nowNs) {
    lookNs = nowNs + TRIAL_NS;
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      tenant.pace.looked(tenant.gate.work().launches());
    }
  }

  private boolean isKnown() {
    for (int i = 0; i < level.size(); i++) {
      if (!level.member(i).pace.isKnown()) {
        return false;
      }
    }
    return true;
  }

  private boolean mayFit() {
    double use = 0;
    for (int i = 0; i < level.size() && use <= MOST_USE; i++) {
      use += level.member(i).useAlone();
    }
    return use <= MOST_USE;
  }

  /** Tenants that were idle during most of the last look are not judged by it. */
  private boolean isWorth() {
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      double least = LEAST_GAIN * level.rate(tenant);
      if (tenant.pace.besideNs() >= TRIAL_NS / 2
          && tenant.pace.kept(tenant.gate.work().launches()) < least) {
        return false;
      }
    }
    return true;
  }

  /** Records that time has passed. */
  void passed(double passedNs) {
    for (int i = 0; on && level.size() > 1 && i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (tenant.open) {
        tenant.pace.passed(passedNs);
      }
    }
  }

  /**
   * How fast a tenant launches kernels: in its own turns, and while other gates are open too.
   * Confined to the scheduler's owner.
   */
  static final class Pace {
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
}
