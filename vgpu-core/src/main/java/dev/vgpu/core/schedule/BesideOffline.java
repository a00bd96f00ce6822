package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * Urgent work that began while offline work was still on the GPU. Both report the time from then
 * until the offline work ended, because measured time also runs during the slices of others. How
 * much of it each had follows from the length of slices, and the rest is given back. Confined to
 * the scheduler's owner.
 */
final class BesideOffline {
  /** Reports that are closer than this are of the same run of work. */
  private static final double GAP_NS = 20_000;

  private final Run urgent = new Run();
  private final Run offline = new Run();
  private double urgentBackNs;
  private double offlineBackNs;

  /** A tenant's latest work without a pause, as it was reported. */
  private static final class Run {
    private @Nullable Tenant tenant;
    private double startNs;
    private double endNs;
    private double toldNs;

    /** Returns whether another run has begun. */
    boolean told(Tenant by, double usedNs) {
      double untilNs = by.gate.busyUntilNs();
      double fromNs = untilNs - usedNs;
      boolean begins = tenant != by || fromNs > endNs + GAP_NS;
      if (begins) {
        tenant = by;
        startNs = fromNs;
        toldNs = 0;
      }
      toldNs += usedNs;
      endNs = untilNs;
      return begins;
    }
  }

  /** Records that a tenant reported more use. Call this before the use is booked. */
  void told(Tenant tenant, double usedNs) {
    if (usedNs <= 0 || tenant.gate.busyUntilNs() < 0) {
      return;
    }
    boolean begins = (tenant.isOffline() ? offline : urgent).told(tenant, usedNs);
    if (begins) {
      urgentBackNs = 0;
      offlineBackNs = 0;
    }
  }

  /** Forgets a tenant that has left. */
  void forget(Tenant tenant) {
    if (tenant == urgent.tenant || tenant == offline.tenant) {
      urgent.tenant = null;
      offline.tenant = null;
    }
  }

  /** Gives back what both were charged for, as far as it is known. */
  void settle(ShareLevel upper, ShareLevel lower) {
    Tenant first = offline.tenant;
    Tenant second = urgent.tenant;
    double commonNs = Math.min(offline.endNs, urgent.endNs) - urgent.startNs;
    // A program can report any time: nobody gets back more than it said that it used.
    double bothNs = Math.min(commonNs, Math.min(offline.toldNs, urgent.toldNs));
    if (first == null || second == null || offline.startNs >= urgent.startNs || bothNs <= 0) {
      return;
    }
    boolean goesOn = urgent.endNs < offline.endNs;
    double urgentNs = goesOn ? bothNs - EarlyTurn.betweenNs(bothNs) : EarlyTurn.laterNs(bothNs);
    double upperNs = EarlyTurn.giveBack(upper, second, bothNs - urgentNs - urgentBackNs);
    double lowerNs = EarlyTurn.giveBack(lower, first, urgentNs - offlineBackNs);
    urgentBackNs = bothNs - urgentNs;
    offlineBackNs = urgentNs;
    upper.advance(-upperNs - lowerNs, -upperNs);
    lower.advance(-lowerNs, -lowerNs);
  }
}
