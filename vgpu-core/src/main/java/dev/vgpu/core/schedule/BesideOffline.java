package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Urgent work that began while offline work was still on the GPU, or queued: a queued kernel begins
 * after the first urgent slice. Both report the time that they share, because measured time also
 * runs during the slices of others. How much of it each had follows from the length of slices, and
 * the rest is given back. Nothing runs while the GPU changes from one to the other: a change is
 * charged to neither, also one just before or after the common time. An offline kernel is reported
 * when it has ended: by then, several runs of urgent work may have come and gone. If it was stopped
 * inside meanwhile, it shared no more of their time than it was not stopped in. Confined to the
 * scheduler's owner.
 */
final class BesideOffline {
  /** Reports that are closer than this are of the same run of work. */
  private static final double GAP_NS = 20_000;

  /** For how much longer than urgent work runs the lane may hold offline work. */
  private static final double MOST_HELD_NS = 800_000;

  /** How many runs of urgent work may wait for the offline work's report. */
  private static final int MOST = 64;

  /** The latest runs of urgent work, a ring. */
  private final Run[] urgent = new Run[MOST];

  private int latest;
  private final Run offline = new Run();

  /** The launches of the tenant that last reported offline work, as it reported them. */
  private long launches;

  /** Whether reports have come that are not settled yet, and whether one was of offline work. */
  private boolean isTold;

  private boolean isOfflineTold;

  /** How much of the offline run's time was shared with urgent runs that are settled. */
  private double sharedNs;

  /** The time of settled urgent runs in which the offline work was stopped inside a kernel. */
  private double awayNs;

  /** What was given back of floor turns. */
  private double floorBackNs;

  BesideOffline() {
    Arrays.setAll(urgent, i -> new Run());
  }

  /** Work of a tenant without a pause, as it was reported, and what was given back for it. */
  private static final class Run {
    private @Nullable Tenant tenant;
    private double startNs;

    /** From when on it is told: later than its start if what came before is settled. */
    private double toldFromNs;

    private double endNs;
    private double toldNs;
    private double urgentBackNs;
    private double offlineBackNs;
    private boolean isSettled;
    private boolean isFloorTurn;

    /** When it was stopped inside a kernel, as far as known; and for how long besides. */
    private double stopNs;

    private double resumeNs;
    private double stoppedNs;

    /** How long it paused before it, if the pause may also have been between its kernels. */
    private double pauseNs;

    boolean goesOn(Tenant by, double spanNs) {
      return tenant == by && by.gate.busyUntilNs() - spanNs <= endNs + GAP_NS;
    }

    void begin(Tenant by, double spanNs) {
      tenant = by;
      startNs = by.gate.busyUntilNs() - spanNs;
      toldFromNs = startNs;
      toldNs = 0;
      stopNs = 0;
      resumeNs = 0;
      stoppedNs = 0;
      urgentBackNs = 0;
      offlineBackNs = 0;
      isSettled = false;
      isFloorTurn = by.floorTurn;
    }

    void told(double usedNs, long untilNs) {
      toldNs += usedNs;
      endNs = (double) untilNs;
    }

    /** Several stops, or one that has followed since, have no known place. */
    void stopped(double fromNs, double ns, boolean isOne) {
      if (isOne && fromNs >= startNs - GAP_NS && fromNs + ns <= endNs + GAP_NS) {
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
        double pauseNs = untilNs - usedNs - stoppedNs - offline.endNs;
        boolean isSame = offline.tenant == tenant;
        offline.begin(tenant, usedNs + stoppedNs);
        offline.pauseNs = isSame && tenant.work.launches() > launches + 1 ? pauseNs : 0;
      }
      launches = tenant.work.launches();
      offline.told(usedNs, untilNs);
      if (stoppedNs > 0) {
        offline.stopped((double) tenant.work.stoppedAtNs(), stoppedNs, isOneStop(tenant));
      }
      isTold = true;
      isOfflineTold = true;
      return;
    }
    Run run = urgent[latest];
    boolean goesOn = run.goesOn(tenant, usedNs);
    if (!goesOn || run.isSettled) {
      latest = (latest + 1) % MOST;
      urgent[latest].begin(tenant, usedNs);
      urgent[latest].startNs = goesOn ? run.startNs : urgent[latest].startNs;
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

  /** Whether it was stopped no more than once since its last report of work that was stopped. */
  private static boolean isOneStop(Tenant tenant) {
    long before = tenant.readStops;
    tenant.readStops = tenant.work.stops();
    return tenant.readStops - before <= 1;
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

  /** {@return how much of floor turns was given back since the last call} */
  double takeFloorBackNs() {
    double backNs = floorBackNs;
    floorBackNs = 0;
    return backNs;
  }

  /** Gives back what both were charged for, as far as it is known. */
  void settle(ShareLevel upper, ShareLevel lower) {
    if (!isTold) {
      return;
    }
    // A program can report any time: nobody gets back more than it said that it used.
    placePause();
    double leftNs = offline.toldNs - sharedNs;
    double stoppedNs = offline.stoppedNs - awayNs;
    for (int i = isOfflineTold ? 1 : MOST; i <= MOST; i++) {
      Run run = urgent[(latest + i) % MOST];
      double commonNs = commonNs(run);
      double runAwayNs = Math.min(commonNs, stoppedNs);
      double bothNs = Math.min(commonNs - runAwayNs, Math.min(leftNs, run.toldNs));
      stoppedNs -= runAwayNs;
      double takenNs = bothNs > 0 ? settle(run, bothNs, leftNs, upper, lower) : 0;
      leftNs -= takenNs;
      if (i < MOST && commonNs > 0 && run.endNs <= offline.endNs) {
        run.isSettled = true;
        sharedNs += takenNs;
        awayNs += runAwayNs;
      }
    }
    isTold = false;
    isOfflineTold = false;
  }

  /**
   * A report may be of work before and after a pause. If urgent work ran meanwhile, and the pause
   * is about as long, the lane held the offline work in that time.
   */
  private void placePause() {
    double fromNs = offline.startNs - offline.pauseNs;
    for (int i = 1; i <= MOST && offline.pauseNs > 0; i++) {
      Run run = urgent[(latest + i) % MOST];
      double longerNs = offline.pauseNs - (run.endNs - run.startNs);
      if (run.tenant != null
          && !run.isSettled
          && run.startNs > fromNs
          && run.startNs < offline.endNs
          && longerNs > EarlyTurn.CHANGE_NS
          && longerNs < MOST_HELD_NS) {
        offline.startNs = fromNs;
        offline.stopNs = run.startNs - EarlyTurn.CHANGE_NS;
        offline.resumeNs = offline.stopNs + offline.pauseNs;
        offline.pauseNs = 0;
      }
    }
  }

  /** How long the run and the offline work were under way together; 0 if that is settled. */
  private double commonNs(Run run) {
    double aheadNs = offline.startNs - run.startNs;
    if (offline.tenant == null || run.tenant == null || run.isSettled || !mayBegin(aheadNs)) {
      return 0;
    }
    return goingNs(Math.max(run.toldFromNs, offline.startNs), Math.min(run.endNs, offline.endNs));
  }

  /**
   * Whether the offline work may begin that much later than the urgent work: a queued kernel begins
   * after the first urgent slice. If it seems to begin sooner, a report was of several runs. A
   * floor turn may begin at any time.
   */
  private boolean mayBegin(double aheadNs) {
    boolean isSoon = aheadNs > 0 && aheadNs < EarlyTurn.SLICE_NS / 2;
    boolean isLate = aheadNs > EarlyTurn.SLICE_NS + EarlyTurn.CHANGE_NS + GAP_NS;
    return offline.isFloorTurn || !(isSoon || isLate);
  }

  /** How much of a span the offline work was not stopped inside a kernel, as far as known. */
  private double goingNs(double fromNs, double toNs) {
    double stoppedNs = Math.min(toNs, offline.resumeNs) - Math.max(fromNs, offline.stopNs);
    return Math.max(0, toNs - fromNs - Math.max(0, stoppedNs));
  }

  /**
   * Gives back what the run and the offline work have both reported, and the changes before and
   * after that.
   *
   * @return how much of the offline run's time is settled with that
   */
  private double settle(Run run, double bothNs, double leftNs, ShareLevel upper, ShareLevel lower) {
    Tenant before = requireNonNull(offline.tenant);
    Tenant after = requireNonNull(run.tenant);
    boolean isQueued = offline.startNs >= run.startNs;
    boolean offlineEnds = run.endNs >= offline.endNs;
    // The common time begins with an urgent slice, or with one of the offline work that was queued.
    // It ends in a slice of the work that ends.
    boolean isCut = isQueued != offlineEnds;
    double changesNs = EarlyTurn.changesNs(bothNs, isCut);
    double secondNs =
        isCut ? bothNs - EarlyTurn.laterNs(bothNs) - changesNs : EarlyTurn.betweenNs(bothNs);
    double firstNs = bothNs - secondNs - changesNs;
    double urgentBackNs = changesNs + (isQueued ? firstNs : secondNs);
    double offlineBackNs = changesNs + (isQueued ? secondNs : firstNs);
    double outerNs = 0;
    if (isQueued) {
      urgentBackNs += Math.min(EarlyTurn.CHANGE_NS, offline.startNs - run.startNs);
    } else {
      outerNs +=
          changeNs(Math.max(offline.startNs, run.startNs - EarlyTurn.CHANGE_NS), run.startNs);
    }
    if (!offlineEnds) {
      outerNs += changeNs(run.endNs, Math.min(offline.endNs, run.endNs + EarlyTurn.CHANGE_NS));
    } else if (isQueued || secondNs > 0) {
      urgentBackNs += Math.min(EarlyTurn.CHANGE_NS, run.endNs - offline.endNs);
    }
    outerNs = Math.min(outerNs, leftNs - bothNs);
    urgentBackNs = Math.min(urgentBackNs, run.toldNs);
    offlineBackNs += outerNs;
    double upperNs = EarlyTurn.giveBack(upper, after, urgentBackNs - run.urgentBackNs);
    double lowerNs = EarlyTurn.giveBack(lower, before, offlineBackNs - run.offlineBackNs);
    run.urgentBackNs = urgentBackNs;
    floorBackNs += before.floorTurn ? offlineBackNs - run.offlineBackNs : 0;
    run.offlineBackNs = offlineBackNs;
    upper.advance(-upperNs - lowerNs, -upperNs);
    lower.advance(-lowerNs, -lowerNs);
    return bothNs + outerNs;
  }

  /** A change beyond the common time, as far as the offline work was under way and not stopped. */
  private double changeNs(double fromNs, double toNs) {
    return offline.stoppedNs > 0 ? 0 : goingNs(fromNs, toNs);
  }
}
