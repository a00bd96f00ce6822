package dev.vgpu.core.schedule;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A turn that began while the last work of the previous turn was still on the GPU, so that the GPU
 * is not idle during the hand-over. Confined to the scheduler's owner.
 *
 * <p>Both tenants report the time from the start of the later one's work until the work of one of
 * them ended, because measured time also runs during the slices of others. How much of it each had
 * follows from the length of slices; the rest is given back. If slices are not as long as the
 * driver's usual ones, the result is off by about half a slice. What a tenant gains by that at the
 * start of its turns it loses at their ends.
 */
final class EarlyTurn {
  private static final long UNKNOWN = Long.MIN_VALUE;

  /** The time slice that the driver gives a context while others have work too. */
  private static final double SLICE_NS = 1_024_000;

  /** The largest usual overrun of a turn after which the next turn may begin early. */
  private static final double SHORT_OVERRUN_NS = 6_000_000;

  private @Nullable Tenant earlier;
  private @Nullable Tenant later;
  private long openedNs;
  private long startNs;
  private long endNs;

  /** Whether the later tenant's work ended first. */
  private boolean laterEnded;

  /** What the later tenant has reported since its work began. */
  private double laterToldNs;

  /**
   * Whether only the last work of a turn is on the GPU, and usually not for long. Work of the next
   * tenant may then queue behind it, so that the GPU is not idle until that arrives.
   */
  static boolean endsSoon(Tenant there, List<Tenant> active) {
    return there.draining
        && !there.floorTurn
        && there.overrunNs >= 0
        && there.overrunNs <= SHORT_OVERRUN_NS
        && there.gate.busyUntilNs() >= 0
        && !isOtherActive(there, active);
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

  /**
   * Whether the time of both tenants on the GPU is over, except that the later one has not reported
   * its use.
   */
  boolean isUntold() {
    return later != null && startNs == UNKNOWN && endNs != UNKNOWN && !laterEnded;
  }

  /** Records that a gate was opened while the one before it drains. */
  void begin(Tenant before, Tenant after, long nowNs) {
    earlier = before;
    later = after;
    openedNs = nowNs;
    startNs = UNKNOWN;
    endNs = UNKNOWN;
    laterEnded = false;
    laterToldNs = 0;
  }

  /** Whether this tenant drains while the next one's turn has begun. */
  boolean isEarlier(Tenant tenant) {
    return earlier == tenant && endNs == UNKNOWN;
  }

  /** Records that a tenant reported more use. Call this before the use is booked. */
  void told(Tenant tenant, double usedNs) {
    if (tenant != later || usedNs <= 0) {
      return;
    }
    if (startNs == UNKNOWN) {
      long untilNs = tenant.gate.busyUntilNs();
      startNs = untilNs < 0 ? UNKNOWN : Math.max(openedNs, untilNs - (long) usedNs);
    }
    laterToldNs += usedNs;
  }

  /** Records that a tenant has drained: only one of the two is left on the GPU. */
  void ended(Tenant tenant, long nowNs) {
    Tenant after = later;
    if (after == null || endNs != UNKNOWN || (tenant != earlier && tenant != after)) {
      return;
    }
    long untilNs = tenant.gate.busyUntilNs();
    endNs = untilNs < 0 ? nowNs : Math.min(untilNs, nowNs);
    laterEnded = tenant == after;
    after.aloneSinceNs = (double) nowNs;
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
    if (before == null || after == null || startNs == UNKNOWN || endNs == UNKNOWN) {
      return 0;
    }
    double bothNs = Math.max(0, endNs - startNs);
    // While the later tenant had nothing on the GPU, the earlier one had it to itself.
    double spanNs = (double) after.gate.busyUntilNs() - startNs;
    double busy = spanNs > 0 ? Math.min(1, laterToldNs / spanNs) : 1;
    double twiceNs = bothNs * busy;
    if (twiceNs > 0) {
      double laterNs = busy * (laterEnded ? bothNs - betweenNs(bothNs) : laterNs(bothNs));
      double backNs = giveBack(level, before, laterNs) + giveBack(level, after, twiceNs - laterNs);
      level.advance(-backNs, -backNs);
      twiceNs = backNs;
    }
    clear();
    return twiceNs;
  }

  /**
   * How much of the common time the later tenant had. The time begins with a slice of the later
   * tenant, and ends within a slice of the earlier one, whose work ends there.
   */
  static double laterNs(double bothNs) {
    double rounds = Math.max(0, Math.rint((bothNs / SLICE_NS - 1.5) / 2));
    return Math.min(bothNs, (rounds + 1) * SLICE_NS);
  }

  /** How much of it the earlier tenant had, if the time ends with a slice of the later one. */
  static double betweenNs(double bothNs) {
    double rounds = Math.max(0, Math.rint((bothNs / SLICE_NS - 0.5) / 2));
    return Math.min(bothNs, rounds * SLICE_NS);
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
