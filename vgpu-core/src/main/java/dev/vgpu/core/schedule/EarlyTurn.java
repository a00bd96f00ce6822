package dev.vgpu.core.schedule;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A turn that began while the last work of the one before it was still on the GPU, so that the GPU
 * does not stand still while the turn is passed on. Confined to the scheduler's owner.
 *
 * <p>Both say that they used the time from when the later one's work began until that of one of
 * them ended, since the measured time of work runs on while others have their slices. What each of
 * them had of it follows from the slices' length; the rest is given back to it. Where slices are of
 * another length than the driver's usual one, that is wrong by half a slice or so; and what a
 * tenant gains by it at the beginning of its turns it loses at their ends.
 */
final class EarlyTurn {
  private static final long UNKNOWN = Long.MIN_VALUE;

  /** The time slice that the driver gives a context while others have work too. */
  private static final double SLICE_NS = 1_024_000;

  /** What is left of a turn when its gate is shut, so short that nobody need wait for it. */
  private static final double SHORT_OVERRUN_NS = 6_000_000;

  private @Nullable Tenant earlier;
  private @Nullable Tenant later;
  private long openedNs;
  private long startNs;
  private long endNs;

  /** It was the later one whose work ended first. */
  private boolean laterEnded;

  /** What the later one has told since its work began. */
  private double laterToldNs;

  /**
   * Whether nothing but the last of a turn's work is on the GPU, and as a rule not for long. The
   * next one's work may come behind it: so the GPU does not stand still while that is on its way.
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

  /** Who of the same level drains while a turn is given to a tenant, or null. */
  static @Nullable Tenant drainingBefore(Tenant tenant, List<Tenant> active) {
    for (int i = 0; i < active.size(); i++) {
      Tenant there = active.get(i);
      if (there.draining && there.isOffline() == tenant.isOffline()) {
        return there;
      }
    }
    return null;
  }

  /** Whether its two tenants' time is over, but for what the later one has not told yet. */
  boolean isUntold() {
    return later != null && startNs == UNKNOWN && endNs != UNKNOWN && !laterEnded;
  }

  /** A gate was opened while the one before it drains. */
  void begin(Tenant before, Tenant after, long nowNs) {
    earlier = before;
    later = after;
    openedNs = nowNs;
    startNs = UNKNOWN;
    endNs = UNKNOWN;
    laterEnded = false;
    laterToldNs = 0;
  }

  /** Whether this is who drains while the next one's turn has begun. */
  boolean isEarlier(Tenant tenant) {
    return earlier == tenant && endNs == UNKNOWN;
  }

  /** A tenant has told that it used more, before the account of it is taken. */
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

  /** A tenant has drained: of the two that are on the GPU, one only is left. */
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

  /** A tenant has gone. */
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
   * Gives back what both were charged for, once that is known.
   *
   * @return by how much the level's time was set back for that, in nanoseconds
   */
  double settle(ShareLevel level) {
    Tenant before = earlier;
    Tenant after = later;
    if (before == null || after == null || startNs == UNKNOWN || endNs == UNKNOWN) {
      return 0;
    }
    double bothNs = Math.max(0, endNs - startNs);
    // Where the later one had nothing on the GPU for a moment, the earlier one had it to itself.
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
   * How much of the time that both had work on the GPU the later one had: it begins with a slice of
   * its own, and ends with one of the earlier one, within which that is done.
   */
  static double laterNs(double bothNs) {
    double rounds = Math.max(0, Math.rint((bothNs / SLICE_NS - 1.5) / 2));
    return Math.min(bothNs, (rounds + 1) * SLICE_NS);
  }

  /** How much the earlier one had of it, where it ends with a slice of the later one. */
  static double betweenNs(double bothNs) {
    double rounds = Math.max(0, Math.rint((bothNs / SLICE_NS - 0.5) / 2));
    return Math.min(bothNs, rounds * SLICE_NS);
  }

  /**
   * Who has no work any more has no part in what the level's time is divided by: what it was owed
   * or owed is others' already, who would all be in debt if the time were taken back as well.
   */
  private static double giveBack(ShareLevel level, Tenant tenant, double ns) {
    tenant.bookedNs -= ns;
    tenant.gate.othersUsed(ns);
    if (!tenant.isRunnable()) {
      return 0;
    }
    level.charge(tenant, -ns);
    return ns;
  }
}
