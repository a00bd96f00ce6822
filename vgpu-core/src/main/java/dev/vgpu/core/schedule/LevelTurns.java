package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * Decides within one level which gates are to be open: in turns, or together. Confined to the
 * scheduler's owner.
 *
 * <p><b>Turns.</b> One tenant has the turn until its deadline, or until it is idle. Then the level
 * picks the next one.
 *
 * <p><b>Sharing.</b> All gates are open, and the device gives tenants with work equal slices. A
 * level shares only if its tenants leave each other enough time ({@link Fit}), or if it has only
 * one tenant with work. Slices would cost the others more than turns: an NVIDIA H200 loses 0.14 ms
 * each time that it changes the process, and slices of two busy processes last 2 ms. A tenant that
 * waits for each of its short kernels would wait for a slice of every other tenant each time.
 */
final class LevelTurns {
  /**
   * The least time until the next check for a capped tenant, because a level's clock may stand
   * still.
   */
  private static final long LEAST_WAKE_NS = 20_000;

  /** The same while the GPU is used: processes report their use in lumps, after the fact. */
  private static final long LEAST_BUSY_WAKE_NS = 100_000;

  /**
   * What processes use after their gate was shut, as a part of a turn that is worth its hand-over.
   */
  private static final double PROCESS_OVERRUN = 0.2;

  /** A tenant that reports less than this part of its turn as used is not believed. */
  private static final double LEAST_TOLD = 0.02;

  final ShareLevel level;
  final Slices slices;
  private final Fit fit;
  private final SchedulerSettings settings;
  private final ActiveGates gates;
  private final TurnLength lengths;
  private final Linger linger;
  private final boolean ofOffline;

  private @Nullable Tenant holder;
  private boolean sharing;

  private long turns;

  /** The time that more urgent tenants left to this level: see {@link LanePauses}. */
  private double levelClock;

  LevelTurns(
      ShareLevel level,
      SchedulerSettings settings,
      ActiveGates gates,
      TurnLength lengths,
      boolean ofOffline) {
    this.level = level;
    this.settings = settings;
    this.gates = gates;
    this.lengths = lengths;
    this.linger = new Linger(settings.lingerNs());
    this.ofOffline = ofOffline;
    this.slices = new Slices(gates, ofOffline);
    this.fit = new Fit(level);
  }

  /** Call this once all tenants have left. */
  void reset() {
    level.reset();
    fit.reset();
    holder = null;
    sharing = false;
    turns = 0;
    levelClock = 0;
  }

  boolean isSharing() {
    return sharing;
  }

  @Nullable Tenant holder() {
    return holder;
  }

  /** Records that time has passed, before what was used in it is known. */
  void passed(double passedNs) {
    slices.passed(passedNs);
    fit.passed(passedNs);
  }

  /** Records that time of this level has passed. */
  void timePassed(double timeNs) {
    levelClock += timeNs;
  }

  /**
   * Takes the decisions that are due.
   *
   * @param yields whether the level must make room for a floor turn
   */
  void step(boolean yields) {
    Tenant had = holder;
    if (had != null && (!had.open || had.isOffline() != ofOffline)) {
      holder = null;
    }
    leaveIdle();
    sharing = maySharing();
    if (sharing) {
      if (holder != null) {
        holder.pace.turnForgotten();
      }
      holder = null;
      share(yields);
    } else if (level.size() > 0) {
      takeTurns(yields);
    }
  }

  /** Tenants that are idle with an open gate leave the level, without being shut. */
  private void leaveIdle() {
    if (!sharing) {
      return;
    }
    for (int i = level.size() - 1; i >= 0; i--) {
      Tenant tenant = level.member(i);
      if (tenant.open && tenant.idleTold) {
        tenant.idleTold = false;
        if (!tenant.gate.hasWork()) {
          gates.leave(tenant);
        }
      }
    }
  }

  /** Whether all tenants with work may have their gates open together. */
  private boolean maySharing() {
    if (!mayOverlap()) {
      fit.end();
      return false;
    }
    if (level.size() == 1) {
      fit.alone();
      return true;
    }
    if (!level.isOfOneClass()) {
      fit.end();
      return false;
    }
    fit.decide(gates.nowNs());
    return fit.isOn();
  }

  /** Whether nothing forbids that all tenants with work have their gates open together. */
  private boolean mayOverlap() {
    if (settings.strict()
        || level.size() == 0
        || level.size() > ActiveGates.MOST_TOGETHER
        || (level.size() > 1 && mustStayShort())
        || level.hasFixed()) {
      return false;
    }
    for (int i = 0; i < level.size(); i++) {
      if (!level.member(i).gate.mayOverlap()) {
        return false;
      }
    }
    return true;
  }

  /** Whether gates are open together because the tenants fit on the GPU together. */
  boolean isFit() {
    return fit.isOn();
  }

  /**
   * Whether more urgent tenants may arrive: the work that several offline tenants have on the GPU
   * would delay them more than the work of one.
   */
  boolean mustStayShort() {
    return ofOffline && gates.urgentTenants() > 0;
  }

  // ---- sharing

  private void share(boolean yields) {
    if (yields) {
      shutAllBut(null);
      return;
    }
    if (level.size() > 1) {
      gates.wakeAt(fit.lookNs());
    } else {
      level.balance();
    }
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      level.forgo(tenant, 0); // none goes faster if another one waits
      if (!tenant.isActive() && gates.tryOpen(tenant, true)) {
        slices.begin(tenant);
        giveTurn(tenant);
      }
    }
  }

  // ---- turns

  private void takeTurns(boolean yields) {
    if (holder == null) {
      adoptHolder();
    }
    shutAllBut(holder);
    Tenant tenant = holder;
    if (tenant != null) {
      stepHolder(tenant, yields);
    }
    if (holder == null && !yields) {
      grant();
    }
  }

  /** After sharing, gives the turn to one of the tenants whose gates are open. */
  private void adoptHolder() {
    Tenant best = level.pick();
    if (best == null || !best.open) {
      for (int i = 0; i < level.size(); i++) {
        best = level.member(i).open ? level.member(i) : best;
      }
    }
    if (best != null && best.open) {
      holder = best;
      best.deadlineNs = gates.nowNs();
      beginTurn(best);
    }
  }

  private void shutAllBut(@Nullable Tenant one) {
    for (int i = gates.size() - 1; i >= 0; i--) {
      Tenant tenant = gates.get(i);
      if (tenant.open && tenant != one && tenant.isOffline() == ofOffline) {
        boolean ignored = gates.shut(tenant, null);
      }
    }
  }

  private void stepHolder(Tenant tenant, boolean yields) {
    boolean alone = gates.runnable() == 1 && tenant.isRunnable();
    if (alone || isUnbounded(tenant)) {
      tenant.pace.turnForgotten();
    }
    if (alone && tenant.takesSurplus()) {
      // No tenant waits and no cap applies: the gate may stay open, and the tenant need not report
      // when it is idle.
      return;
    }
    long nowNs = gates.nowNs();
    if (nowNs >= tenant.deadlineNs) {
      forgoPauses(tenant);
    }
    Tenant next = level.pick();
    boolean stays = !yields && (isUnbounded(tenant) || next == tenant);
    boolean hurried = next != null && next != tenant && next.gate.isAwaited();
    if (tenant.gate.hasWork()) {
      if (isUnbounded(tenant)) {
        return;
      }
      if (nowNs >= tenant.deadlineNs || hurried) {
        if (!hurried && level.size() > 1 && hasBeenSilent(tenant)) {
          stays = !yields && level.pick() == tenant;
        }
        if (!stays) {
          tenant.pace.turnEnded(nowNs);
          boolean ignored = gates.shut(tenant, null);
          holder = null;
          return;
        }
        tenant.deadlineNs = nowNs + openNs(tenant);
      }
      gates.wakeAt(tenant.deadlineNs);
      return;
    }
    if (stays && !alone && linger.lingers(tenant, nowNs)) {
      gates.wakeAt(tenant.lingerUntilNs);
      return;
    }
    if (alone && nowNs < tenant.deadlineNs) {
      gates.wakeAt(tenant.deadlineNs);
      return;
    }
    boolean ignored = gates.shut(tenant, null);
    holder = null;
  }

  /**
   * Charges a tenant for its turn if it claimed to have work but reported next to no use. A tenant
   * that cannot be measured, or does not report, must not get the GPU for free. What it reports
   * later counts as paid.
   */
  private boolean hasBeenSilent(Tenant tenant) {
    // While the previous turn's last work was ending, it did not have the GPU to itself.
    double aloneNs = (double) gates.nowNs() - tenant.aloneSinceNs;
    double spanNs = Math.min(levelClock - tenant.turnBegan, aloneNs);
    double untoldNs = spanNs - (tenant.bookedNs - tenant.bookedAtTurnNs);
    boolean silent = untoldNs > spanNs * (1 - LEAST_TOLD);
    if (silent) {
      tenant.prepaidNs += untoldNs;
      tenant.bookedNs += untoldNs;
      level.charge(tenant, untoldNs);
      level.advance(untoldNs, untoldNs);
    }
    beginTurn(tenant);
    return silent;
  }

  /**
   * Prevents a tenant's lag from growing in its own turn: it did not want the time that it left
   * unused. Otherwise it would save that up and keep others waiting later. Use that is not reported
   * yet is allowed for.
   */
  private void forgoPauses(Tenant tenant) {
    double untoldNs = SchedulerSettings.ACCURACY_NS + 2 * tenant.lumpNs;
    level.forgo(tenant, Math.max(untoldNs, tenant.lagAtTurnNs));
    tenant.lagAtTurnNs = level.lag(tenant);
  }

  private void beginTurn(Tenant tenant) {
    tenant.lagAtTurnNs = level.lag(tenant);
    tenant.turnBegan = levelClock;
    tenant.bookedAtTurnNs = tenant.bookedNs;
  }

  private void giveTurn(Tenant tenant) {
    long openNs = openNs(tenant);
    tenant.deadlineNs = gates.nowNs() + openNs;
    level.turnGiven(tenant, ++turns, openNs + Math.max(0, tenant.overrunNs));
  }

  /**
   * How long a gate is open in a turn. Work that still runs when it is shut counts as part of the
   * turn.
   */
  private long openNs(Tenant tenant) {
    double turnNs = lengths.of(tenant, level.rate(tenant), gates.runnable() == 1);
    double overrunNs =
        tenant.overrunNs < 0
            ? tenant.gate.leastTurnNs() * PROCESS_OVERRUN
            : Math.min(tenant.overrunNs, turnNs);
    return (long) Math.max((double) settings.shortestTurnNs(), turnNs - overrunNs);
  }

  /** Whether no tenant could get the turn at its end except by preemption. */
  private boolean isUnbounded(Tenant tenant) {
    return level.size() == 1
        && tenant.takesSurplus()
        && !tenant.floorTurn
        && (ofOffline || settings.offlineFloor() == 0);
  }

  /** Gives a turn to the next tenant, whatever has prevented it so far. */
  void forceTurn() {
    holder = null;
    grant();
  }

  private void grant() {
    Tenant best = level.pick();
    if (best == null || best.isActive()) {
      return;
    }
    if (gates.tryOpen(best, false)) {
      slices.begin(best);
      best.pace.turnBegan(best.gate.work().launches(), gates.nowNs());
      holder = best;
      best.prepaidNs = 0;
      beginTurn(best);
      giveTurn(best);
      if (!(gates.runnable() == 1 && best.takesSurplus()) && !isUnbounded(best)) {
        gates.wakeAt(best.deadlineNs);
      }
    }
  }

  /** Schedules a wake-up for when the first tenant at its cap may run again. */
  void wakeWhenEligible() {
    double inNs = level.size() == 0 ? Double.MAX_VALUE : level.nextEligibleInNs();
    if (inNs < 1e18) {
      long leastNs = gates.size() == 0 ? LEAST_WAKE_NS : LEAST_BUSY_WAKE_NS;
      gates.wakeAt(gates.nowNs() + Math.max(leastNs, (long) Math.ceil(inNs)));
    }
  }
}
