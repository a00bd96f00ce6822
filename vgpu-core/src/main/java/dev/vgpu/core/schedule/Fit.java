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
}
