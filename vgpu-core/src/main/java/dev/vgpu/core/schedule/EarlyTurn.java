package dev.vgpu.core.schedule;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A turn that began while the last work of the previous turn was still on the GPU, so that the GPU
 * is not idle during the hand-over. Confined to the scheduler's owner.
 *
 * <p>The earlier tenant's work runs on until it ends. Meanwhile the later one has work in runs,
 * with pauses between them. Both tenants report the time of these runs, because measured time also
 * runs during the slices of others. How much of a run each had follows from the length of slices: a
 * run begins with a slice of the later tenant. The rest is given back. While the GPU changes from
 * one to the other, nothing runs: a change is charged to neither. If slices are not as long as the
 * driver's usual ones, the result is off by about half a slice. What a tenant gains by that at the
 * start of its turns it loses at their ends.
 */
final class EarlyTurn {
  private static final long UNKNOWN = Long.MIN_VALUE;

  /** The time slice that the driver gives a context while others have work too. */
  static final double SLICE_NS = 2_048_000;

  /** How long nothing runs when the GPU changes from one process to another. */
  static final double CHANGE_NS = 140_000;

  /**
   * How far a turn's end may usually be from what is expected, for the next turn to begin before
   * it. If it ends later than expected, the GPU may change the process two more times.
   */
  private static final double MOST_OFF_NS = 500_000;

  /** The time from opening a gate until a kernel from behind it arrives on the GPU. */
  private static final long ARRIVAL_NS = 150_000;

  /** Reports that are closer than this are of the same run. */
  private static final double GAP_NS = 20_000;

  private @Nullable Tenant earlier;
  private @Nullable Tenant later;
  private long openedNs;

  /** When the work of the earlier or of the later tenant ended, and so the common time. */
  private long endNs;

  /** Whether the later tenant's work has ended: it reports no more. */
  private boolean laterEnded;

  /** The later tenant's latest run, as it was reported. */
  private double runStartNs;

  private double runEndNs;

  /** Until when the common time is counted. */
  private double countedNs;

  /** What was charged to each, though it was the other's time or a change. */
  private double earlierBackNs;

  private double laterBackNs;

  /**
   * When the next turn may begin although the last work of this one is still on the GPU: such that
   * the next tenant's first kernel arrives when that work usually ends. {@link TurnStepper#NEVER}
   * if the end cannot be foretold. An earlier arrival would make the GPU change the process two
   * more times, which costs as much as a late one.
   */
  static long mayBeginNs(Tenant there, List<Tenant> active) {
    boolean may =
        there.draining
            && !there.floorTurn
            && there.overrunNs >= 0
            && there.overrunOffNs <= MOST_OFF_NS
            && there.gate.busyUntilNs() >= 0
            && !isOtherActive(there, active);
    return may ? there.endExpectedNs - ARRIVAL_NS : TurnStepper.NEVER;
  }

  private static boolean isOtherActive(Tenant there, List<Tenant> active) {
    for (int i = 0; i < active.size(); i++) {
      Tenant other = active.get(i);
      if (other != there && other.isOffline() == there.isOffline()) {
        return true;
      }
    }
    return false;
  }

  /** The tenant of the same level that drains while another one is given the turn, or null. */
  static @Nullable Tenant drainingBefore(Tenant tenant, List<Tenant> active) {
    for (int i = 0; i < active.size(); i++) {
      Tenant there = active.get(i);
      if (there.draining && there.isOffline() == tenant.isOffline()) {
        return there;
      }
    }
    return null;
  }

  /** Whether the common time is over, but the later tenant has not reported all of it. */
  boolean isUntold() {
    return later != null && endNs != UNKNOWN && !isTold();
  }

  private boolean isTold() {
    return endNs != UNKNOWN && (laterEnded || runEndNs >= (double) endNs);
  }

  /** Records that a gate was opened while the one before it drains. */
  void begin(Tenant before, Tenant after, long nowNs) {
    earlier = before;
    later = after;
    openedNs = nowNs;
    endNs = UNKNOWN;
    laterEnded = false;
    runStartNs = (double) nowNs;
    runEndNs = (double) nowNs;
    countedNs = (double) nowNs;
    earlierBackNs = 0;
    laterBackNs = 0;
  }

  /** Whether this tenant drains while the next one's turn has begun. */
  boolean isEarlier(Tenant tenant) {
    return earlier == tenant && endNs == UNKNOWN;
  }

  /** Records that a tenant reported more use. Call this before the use is booked. */
  void told(Tenant tenant, double usedNs) {
    double untilNs = tenant.gate.busyUntilNs();
    if (tenant != later || usedNs <= 0 || untilNs <= (double) openedNs) {
      return;
    }
    double fromNs = Math.max((double) openedNs, untilNs - usedNs);
    if (fromNs > runEndNs + GAP_NS) {
      endRun();
      runStartNs = fromNs;
    }
    runEndNs = Math.max(runEndNs, untilNs);
  }

  /**
   * Counts the latest run, as far as it was within the common time, and the pause before it. The
   * earlier tenant's work was on the GPU in the pause, except during the changes.
   */
  private void endRun() {
    boolean isCut = endNs != UNKNOWN && runEndNs > (double) endNs;
    double ns = (isCut ? (double) endNs : runEndNs) - runStartNs;
    if (ns > 0) {
      boolean isFirst = countedNs <= (double) openedNs;
      double pauseNs = Math.max(0, runStartNs - countedNs);
      double changesNs = changesNs(ns, isCut);
      double laterNs = isCut ? laterNs(ns) : ns - betweenNs(ns) - changesNs;
      earlierBackNs += Math.min(pauseNs, (isFirst ? 1 : 2) * CHANGE_NS) + laterNs + changesNs;
      laterBackNs += ns - laterNs;
      if (isCut && laterNs + changesNs < ns) {
        laterBackNs += Math.min(CHANGE_NS, runEndNs - (double) endNs);
      }
      countedNs = runEndNs;
    }
  }

  /** Records that a tenant has drained: only one of the two is left on the GPU. */
  void ended(Tenant tenant, long nowNs) {
    Tenant after = later;
    if (after == null || (tenant != earlier && tenant != after)) {
      return;
    }
    laterEnded |= tenant == after;
    if (endNs == UNKNOWN) {
      long untilNs = tenant.gate.busyUntilNs();
      endNs = untilNs < 0 ? nowNs : Math.min(untilNs, nowNs);
      after.aloneSinceNs = (double) nowNs;
    }
  }

  /** Forgets a tenant that has left. */
  void forget(Tenant tenant) {
    Tenant after = later;
    if (after != null && (tenant == earlier || tenant == after)) {
      if (endNs == UNKNOWN) {
        after.aloneSinceNs = (double) openedNs;
      }
      clear();
    }
  }

  private void clear() {
    earlier = null;
    later = null;
  }

  /**
   * Gives back what both were charged for, once the amount is known.
   *
   * @return how far the level's time was set back for that, in nanoseconds
   */
  double settle(ShareLevel level) {
    Tenant before = earlier;
    Tenant after = later;
    if (before == null || after == null || !isTold()) {
      return 0;
    }
    endRun();
    double backNs = 0;
    if (earlierBackNs + laterBackNs > 0) {
      double restNs = (double) endNs - countedNs;
      if (restNs >= 0) {
        // The GPU changed back to the earlier tenant. If the later one ended first, that is to
        // come.
        earlierBackNs += restNs > 0 ? Math.min(CHANGE_NS, restNs) : CHANGE_NS;
      }
      backNs = giveBack(level, before, earlierBackNs) + giveBack(level, after, laterBackNs);
      level.advance(-backNs, -backNs);
    }
    clear();
    return backNs;
  }

  /**
   * How much of a run the later tenant had, if it ends within a slice of the earlier one, whose
   * work ends there.
   */
  static double laterNs(double bothNs) {
    return Math.min(bothNs, (roundsCut(bothNs) + 1) * SLICE_NS);
  }

  /** How much of it the earlier tenant had, if it ends with a slice of the later one. */
  static double betweenNs(double bothNs) {
    return Math.min(bothNs, rounds(bothNs) * SLICE_NS);
  }

  /**
   * How much of it passed while the GPU changed from one to the other.
   *
   * @param isCut whether it ends within a slice of the earlier tenant
   */
  static double changesNs(double bothNs, boolean isCut) {
    double slicesNs = isCut ? laterNs(bothNs) : betweenNs(bothNs);
    double changes = 2 * (isCut ? roundsCut(bothNs) + 0.5 : rounds(bothNs));
    return Math.min(bothNs - slicesNs, changes * CHANGE_NS);
  }

  private static double roundsCut(double bothNs) {
    return rounds(bothNs - SLICE_NS - CHANGE_NS);
  }

  /** How often each has had a whole slice before the last one, in the middle of which it ends. */
  private static double rounds(double bothNs) {
    return Math.max(0, Math.rint((bothNs - SLICE_NS / 2) / (2 * (SLICE_NS + CHANGE_NS))));
  }

  /**
   * A tenant without work has no part in the level's time. If it takes surplus, it gets no lag
   * back: what it was owed or owed has passed to the others, who would all be in debt if the time
   * were taken back as well. A fixed share owes to no other tenant, so its debt is paid back.
   */
  static double giveBack(ShareLevel level, Tenant tenant, double ns) {
    tenant.bookedNs -= ns;
    tenant.gate.othersUsed(ns);
    if (!tenant.isRunnable()) {
      tenant.lagNs = tenant.takesSurplus() ? tenant.lagNs : ShareLevel.paidBack(tenant.lagNs, ns);
      return 0;
    }
    level.charge(tenant, -ns);
    return ns;
  }
}
