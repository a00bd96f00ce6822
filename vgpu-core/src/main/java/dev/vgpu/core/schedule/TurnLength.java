package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * The length of turns: long enough that hand-overs cost at most {@link #MOST_COST}, as far as the
 * settings and the accuracy of shares allow. The cost of a hand-over is measured: the time for
 * which the GPU stands still from the last work behind one gate to the first behind the next. It
 * includes the change from one process to another. Confined to the scheduler's owner.
 */
final class TurnLength {
  /** The part of the GPU's time that hand-overs may cost: a hundredth, with a margin. */
  static final double MOST_COST = 0.009;

  private static final double FIRST_GUESS_NS = 10_000;
  private static final double MOST_HAND_OVER_NS = 5_000_000;

  private static final double SLOW = 0.125;

  /** One in this many hand-overs is measured closely, which takes an additional step. */
  private static final int LOOK_EVERY = 8;

  private final SchedulerSettings settings;
  private @Nullable Tenant from;
  private @Nullable Tenant to;

  /** When the work of the turn before ended; negative if not known. */
  private long endedNs;

  private @Nullable Tenant last;
  private double lostNs;
  private long untilNs;
  private long handOvers;
  private long looks;

  TurnLength(SchedulerSettings settings) {
    this.settings = settings;
  }

  /**
   * The length of a turn for a tenant that gets this part of its level's time. If it is alone, its
   * turn is handed over to nobody.
   */
  long of(Tenant tenant, double rate, boolean alone) {
    double shortestNs = settings.shortestTurnNs();
    double longestNs = settings.longestTurnNs();
    double handOverNs = alone ? 0 : handOverNs(tenant);
    double worthNs = Math.max(handOverNs / MOST_COST, (double) tenant.gate.leastTurnNs());
    double accurateNs = rate < 1 ? accuracyNs(handOverNs, rate) / (1 - rate) : longestNs;
    double mostNs = Math.max(shortestNs, Math.min(longestNs, accurateNs));
    return Math.round(Math.max(shortestNs, Math.min(worthNs, mostNs)));
  }

  /**
   * How much a turn may change its tenant's lag. In a window, the tenant lacks what hand-overs take
   * of its part, which is less the longer turns are, besides that lag. The sum of both is smallest
   * if they are equal: see the package's page.
   */
  static double accuracyNs(double handOverNs, double rate) {
    double evenNs = Math.sqrt(SchedulerSettings.WINDOW_NS * handOverNs * rate * (1 - rate));
    return Math.max(SchedulerSettings.ACCURACY_NS, evenNs);
  }

  /** The measured cost of a hand-over to a tenant. */
  static double handOverNs(Tenant tenant) {
    if (tenant.handOverNs < 0) {
      double guessNs = Math.max(FIRST_GUESS_NS, tenant.gate.leastTurnNs() * MOST_COST);
      tenant.handOverNs = Math.max(guessNs, leastNs(tenant));
    }
    return tenant.handOverNs;
  }

  /** Only processes report when their work ended, and the GPU changes from one to another. */
  private static double leastNs(Tenant tenant) {
    return tenant.gate.busyUntilNs() < 0 ? 0 : EarlyTurn.CHANGE_NS;
  }

  /** How often a gate was opened after another tenant's. */
  long handOvers() {
    return handOvers;
  }

  /** Call this once all tenants have left. */
  void reset() {
    from = null;
    to = null;
    last = null;
    looks = 0;
  }

  /** Forgets a tenant that has left for good. */
  void forget(Tenant tenant) {
    from = from == tenant ? null : from;
    to = to == tenant ? null : to;
    last = last == tenant ? null : last;
  }

  /** Records that a gate was shut. */
  void shut(Tenant tenant) {
    from = tenant;
    to = null;
    lostNs = 0;
  }

  /**
   * Records that a gate was opened.
   *
   * @param early whether the previous tenant's work has not ended, so that no time is lost
   * @return when to read the use, to measure the hand-over; {@link Long#MAX_VALUE} means never
   */
  long opened(Tenant tenant, boolean early, long nowNs) {
    Tenant before = from;
    from = null;
    to = null;
    if (last == tenant) {
      return Long.MAX_VALUE;
    }
    last = tenant;
    handOvers++;
    if (early) {
      tenant.handOverNs = Math.max(handOverNs(tenant) * (1 - SLOW), leastNs(tenant));
    }
    if (before == null || before == tenant || early) {
      return Long.MAX_VALUE;
    }
    to = tenant;
    endedNs = tenant.gate.busyUntilNs() < 0 ? -1 : before.gate.busyUntilNs();
    untilNs = nowNs + (long) MOST_HAND_OVER_NS;
    looks++;
    return endedNs < 0 && looks % LOOK_EVERY == 0
        ? nowNs + (long) (2 * handOverNs(tenant)) + (long) FIRST_GUESS_NS
        : Long.MAX_VALUE;
  }

  /** Records that time has passed, and how much of it was used by any tenant. */
  void passed(double passedNs, double usedNs, long nowNs) {
    if (from != null) {
      lostNs += Math.max(0, passedNs - usedNs);
    }
    Tenant opened = to;
    if (opened != null) {
      lostNs += Math.max(0, passedNs - usedNs);
      if (opened.saidNs > 0) {
        double before = handOverNs(opened);
        double ns = Math.min(lostNs, MOST_HAND_OVER_NS);
        double weight = SLOW;
        if (endedNs >= 0) {
          double betweenNs = opened.gate.busyUntilNs() - opened.saidNs - endedNs;
          ns = Math.max(leastNs(opened), Math.min(ns, betweenNs));
        } else if (ns < before) {
          weight = 0.5; // use that is reported late looks like lost time
        }
        opened.handOverNs = before + weight * (ns - before);
        to = null;
      } else if (nowNs > untilNs || !opened.isActive()) {
        to = null;
      }
    }
  }
}
