package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Urgent work that began while offline work was still on the GPU, or queued: a queued kernel begins
 * after the first urgent slice. Both report the time that they share, because measured time also
 * runs during the slices of others. How much of it each had follows from the length of slices, and
 * the rest is given back. An offline kernel is reported when it has ended: by then, several runs of
 * urgent work may have come and gone. If it was stopped inside meanwhile, it shared no more of
 * their time than it was not stopped in. Confined to the scheduler's owner.
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

  /** The time of settled urgent runs in which the offline work was stopped inside a kernel. */
  private double awayNs;

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

    /** When it was stopped inside a kernel, as far as known; and for how long besides. */
    private double stopNs;

    private double resumeNs;
    private double stoppedNs;

    boolean goesOn(Tenant by, double spanNs) {
      return tenant == by && by.gate.busyUntilNs() - spanNs <= endNs + GAP_NS;
    }

    void begin(Tenant by, double spanNs) {
      tenant = by;
      startNs = by.gate.busyUntilNs() - spanNs;
      toldNs = 0;
      stopNs = 0;
      resumeNs = 0;
      stoppedNs = 0;
      urgentBackNs = 0;
      offlineBackNs = 0;
      isSettled = false;
    }

    void told(double usedNs, long untilNs) {
      toldNs += usedNs;
      endNs = (double) untilNs;
    }

    /** Several stops, or one that has followed since, have no known place. */
    void stopped(double fromNs, double ns) {
      if (fromNs >= startNs - GAP_NS && fromNs + ns <= endNs + GAP_NS) {
        stopNs = fromNs;
        resumeNs = fromNs + ns;
      } else {
        stoppedNs += ns;
      }
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
      double stoppedNs = newlyStoppedNs(tenant);
      if (!offline.goesOn(tenant, usedNs + stoppedNs)) {
        settle(upper, lower);
        endOffline();
        offline.begin(tenant, usedNs + stoppedNs);
      }
      offline.told(usedNs, untilNs);
      if (stoppedNs > 0) {
        offline.stopped((double) tenant.work.stoppedAtNs(), stoppedNs);
      }
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

  /**
   * For how long the work that a tenant reports now was stopped. A process that ends takes its part
   * away.
   */
  private static double newlyStoppedNs(Tenant tenant) {
    long beforeNs = tenant.readStoppedNs;
    tenant.readStoppedNs = tenant.work.stoppedNs();
    return Math.max(0, tenant.readStoppedNs - beforeNs);
  }

  /** Nothing more is told of the urgent runs that the offline run shared. */
  private void endOffline() {
    for (Run run : urgent) {
      run.isSettled |= run.offlineBackNs > 0;
    }
    sharedNs = 0;
    awayNs = 0;
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
    double stoppedNs = offline.stoppedNs - awayNs;
    for (int i = isOfflineTold ? 1 : MOST; i <= MOST; i++) {
      Run run = urgent[(latest + i) % MOST];
      double commonNs = commonNs(run);
      double runAwayNs = Math.min(commonNs, stoppedNs);
      double bothNs = Math.min(commonNs - runAwayNs, Math.min(leftNs, run.toldNs));
      stoppedNs -= runAwayNs;
      if (bothNs > 0) {
        settle(run, bothNs, upper, lower);
        leftNs -= bothNs;
      }
      if (i < MOST && commonNs > 0 && run.endNs <= offline.endNs) {
        run.isSettled = true;
        sharedNs += Math.max(0, bothNs);
        awayNs += runAwayNs;
      }
    }
    isTold = false;
    isOfflineTold = false;
  }

  /** How long the run and the offline work were under way together; 0 if that is settled. */
  private double commonNs(Run run) {
    double aheadNs = offline.startNs - run.startNs;
    if (offline.tenant == null
        || run.tenant == null
        || run.isSettled
        || aheadNs > EarlyTurn.SLICE_NS + GAP_NS) {
      return 0;
    }
    double fromNs = Math.max(run.startNs, offline.startNs);
    double toNs = Math.min(run.endNs, offline.endNs);
    double stoppedNs = Math.min(toNs, offline.resumeNs) - Math.max(fromNs, offline.stopNs);
    return Math.max(0, toNs - fromNs - Math.max(0, stoppedNs));
  }

  /** Gives back what the run and the offline work have both reported. */
  private void settle(Run run, double bothNs, ShareLevel upper, ShareLevel lower) {
    Tenant before = requireNonNull(offline.tenant);
    Tenant after = requireNonNull(run.tenant);
    boolean offlineEnds = run.endNs >= offline.endNs;
    double urgentNs = urgentNs(bothNs, offline.startNs >= run.startNs, offlineEnds);
    double upperNs = EarlyTurn.giveBack(upper, after, bothNs - urgentNs - run.urgentBackNs);
    double lowerNs = EarlyTurn.giveBack(lower, before, urgentNs - run.offlineBackNs);
    run.urgentBackNs = bothNs - urgentNs;
    run.offlineBackNs = urgentNs;
    upper.advance(-upperNs - lowerNs, -upperNs);
    lower.advance(-lowerNs, -lowerNs);
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
