package dev.vgpu.core.schedule;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Urgent work that began while offline work was still on the GPU, or queued: a queued kernel begins
 * after the first urgent slice. Both report the time that they share, because measured time also
 * runs during the slices of others. How much of it each had follows from the length of slices, and
 * the rest is given back. An offline kernel is reported when it has ended: by then, several runs of
 * urgent work may have come and gone. Confined to the scheduler's owner.
 */
final class BesideOffline {
  /** Reports that are closer than this are of the same run of work. */
  private static final double GAP_NS = 20_000;

  /** How many runs of urgent work may wait for the offline work's report. */
  private static final int MOST = 64;

  /** The latest runs of urgent work, a ring. */
  private final Run[] urgent = new Run[MOST];

  private int latest;
  private final Run offline = new Run();

  /** Whether reports have come that are not settled yet, and whether one was of offline work. */
  private boolean isTold;

  private boolean isOfflineTold;

  /** How much of the offline run's time was shared with urgent runs that are settled. */
  private double sharedNs;

  BesideOffline() {
    Arrays.setAll(urgent, i -> new Run());
  }

  /** Work of a tenant without a pause, as it was reported, and what was given back for it. */
  private static final class Run {
    private @Nullable Tenant tenant;
    private double startNs;
    private double endNs;
    private double toldNs;
    private double urgentBackNs;
    private double offlineBackNs;
    private boolean isSettled;

    boolean goesOn(Tenant by, double usedNs) {
      return tenant == by && by.gate.busyUntilNs() - usedNs <= endNs + GAP_NS;
    }

    void begin(Tenant by, double usedNs) {
      tenant = by;
      startNs = by.gate.busyUntilNs() - usedNs;
      toldNs = 0;
      urgentBackNs = 0;
      offlineBackNs = 0;
      isSettled = false;
    }

    void told(double usedNs, long untilNs) {
      toldNs += usedNs;
      endNs = (double) untilNs;
    }
  }

  /**
   * Records that a tenant reported more use. Call this before the use is booked. Before another
   * offline run begins, what was told so far is settled.
   */
  void told(Tenant tenant, double usedNs, ShareLevel upper, ShareLevel lower) {
    long untilNs = tenant.gate.busyUntilNs();
    if (usedNs <= 0 || untilNs < 0) {
      return;
    }
    if (tenant.isOffline()) {
      if (!offline.goesOn(tenant, usedNs)) {
        settle(upper, lower);
        endOffline();
        offline.begin(tenant, usedNs);
      }
      offline.told(usedNs, untilNs);
      isTold = true;
      isOfflineTold = true;
      return;
    }
    if (!urgent[latest].goesOn(tenant, usedNs)) {
      latest = (latest + 1) % MOST;
      urgent[latest].begin(tenant, usedNs);
    }
    urgent[latest].told(usedNs, untilNs);
    isTold = true;
  }

  /** Nothing more is told of the urgent runs that the offline run shared. */
  private void endOffline() {
    for (Run run : urgent) {
      run.isSettled |= run.offlineBackNs > 0;
    }
    sharedNs = 0;
  }

  /** Forgets a tenant that has left. */
  void forget(Tenant tenant) {
    if (tenant == offline.tenant) {
      offline.tenant = null;
    }
    for (Run run : urgent) {
      if (run.tenant == tenant) {
        run.tenant = null;
      }
    }
  }

  /** Gives back what both were charged for, as far as it is known. */
  void settle(ShareLevel upper, ShareLevel lower) {
    if (!isTold) {
      return;
    }
    // A program can report any time: nobody gets back more than it said that it used.
    double leftNs = offline.toldNs - sharedNs;
    for (int i = isOfflineTold ? 1 : MOST; i <= MOST; i++) {
      Run run = urgent[(latest + i) % MOST];
      double bothNs = settle(run, leftNs, upper, lower);
      leftNs -= bothNs;
      if (i < MOST && bothNs > 0 && run.endNs <= offline.endNs) {
        run.isSettled = true;
        sharedNs += bothNs;
      }
    }
    isTold = false;
    isOfflineTold = false;
  }

  /**
   * Returns the time that the run and the offline work have both reported, if it is not settled.
   */
  private double settle(Run run, double mostNs, ShareLevel upper, ShareLevel lower) {
    Tenant before = offline.tenant;
    Tenant after = run.tenant;
    double aheadNs = offline.startNs - run.startNs;
    double commonNs = Math.min(offline.endNs, run.endNs) - run.startNs - Math.max(0, aheadNs);
    double bothNs = Math.min(commonNs, Math.min(mostNs, run.toldNs));
    if (before == null || after == null || run.isSettled) {
      return 0;
    }
    if (aheadNs > EarlyTurn.SLICE_NS + GAP_NS || bothNs <= 0) {
      return 0;
    }
    boolean offlineEnds = run.endNs >= offline.endNs;
    double urgentNs = urgentNs(bothNs, aheadNs >= 0, offlineEnds);
    double upperNs = EarlyTurn.giveBack(upper, after, bothNs - urgentNs - run.urgentBackNs);
    double lowerNs = EarlyTurn.giveBack(lower, before, urgentNs - run.offlineBackNs);
    run.urgentBackNs = bothNs - urgentNs;
    run.offlineBackNs = urgentNs;
    upper.advance(-upperNs - lowerNs, -upperNs);
    lower.advance(-lowerNs, -lowerNs);
    return bothNs;
  }

  /**
   * How much of the common time the urgent work had. That time begins with an urgent slice, or with
   * one of the offline work that was queued. It ends in a slice of the work that ends.
   */
  private static double urgentNs(double bothNs, boolean isQueued, boolean offlineEnds) {
    if (isQueued) {
      return offlineEnds ? EarlyTurn.betweenNs(bothNs) : bothNs - EarlyTurn.laterNs(bothNs);
    }
    return offlineEnds ? EarlyTurn.laterNs(bothNs) : bothNs - EarlyTurn.betweenNs(bothNs);
  }
}
