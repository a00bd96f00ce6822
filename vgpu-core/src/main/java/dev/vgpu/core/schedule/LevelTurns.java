package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * Decides within one level whose gates are to be open: in turns, or together. Confined to the
 * scheduler's owner.
 *
 * <p><b>Turns.</b> One tenant has the turn until its deadline, or until it is idle; then the level
 * says who is next.
 *
 * <p><b>Sharing.</b> All gates are open and the device gives those with work equal slices. Whoever
 * got {@link TurnLength#ACCURACY_NS} more than it should is held back until it has paid that back;
 * but not for the sake of tenants that do not use what they get by that.
 */
final class LevelTurns {
  /** A level's clock may stand still: its next event is not looked for more often than so. */
  private static final long LEAST_WAKE_NS = 20_000;

  private static final double LEAST_SHARING_WAKE_NS = 1_000_000;
  private static final double MOST_SHARING_WAKE_NS = 50_000_000;

  /** How long holding back is tried before it is seen whether it is of use. */
  private static final double TRIAL_NS = 5_000_000;

  private static final long SHORTEST_RESPITE_NS = 50_000_000;
  private static final long LONGEST_RESPITE_NS = 1_600_000_000;

  final ShareLevel level;
  private final SchedulerSettings settings;
  private final ActiveGates gates;
  private final TurnLength lengths;
  private final Linger linger;
  private final boolean ofOffline;

  private @Nullable Tenant holder;
  private boolean sharing;
  private long turns;

  /** While somebody is held back: the time that the level had meanwhile, and what it used. */
  private boolean holding;

  private double heldTimeNs;
  private double heldUseNs;
  private long respiteNs = SHORTEST_RESPITE_NS;
  private long respiteUntilNs = Long.MIN_VALUE;

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
  }

  boolean isSharing() {
    return sharing;
  }

  @Nullable Tenant holder() {
    return holder;
  }

  /** Time has passed that was this level's, and so much of it was used. */
  void passed(double timeNs, double usedNs) {
    if (holding) {
      heldTimeNs += Math.max(0, timeNs);
      heldUseNs += usedNs;
    }
  }

  /**
   * Takes the decisions that are due.
   *
   * @param yields whether it has to make room for a floor turn
   */
  void step(boolean yields) {
    Tenant had = holder;
    if (had != null && (!had.open || had.isOffline() != ofOffline)) {
      holder = null;
    }
    leaveIdle();
    boolean shared = sharing;
    sharing = maySharing();
    if (shared && !sharing) {
      release(false);
    }
    if (sharing) {
      holder = null;
      share(yields);
    } else if (level.size() > 0) {
      takeTurns(yields);
    }
  }

  /** Those who are idle with an open gate have no work; they need not be shut for that. */
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

  /** Whether those who have work may all have their gates open. */
  private boolean maySharing() {
    if (settings.strict()
        || level.size() == 0
        || level.size() > ActiveGates.MOST_TOGETHER
        || level.hasFixed()
        || !level.isOfOneClass()) {
      return false;
    }
    for (int i = 0; i < level.size(); i++) {
      if (!level.member(i).gate.mayOverlap()) {
        return false;
      }
    }
    return true;
  }

  // ---- sharing

  private void share(boolean yields) {
    if (yields) {
      shutAllBut(null);
      return;
    }
    review();
    for (int i = level.size() - 1; i >= 0; i--) {
      Tenant tenant = level.member(i);
      if (tenant.heldBack && tenant.open) {
        boolean ignored = gates.shut(tenant, null);
      }
    }
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (!tenant.heldBack && !tenant.isActive() && gates.tryOpen(tenant, true)) {
        level.turnGiven(tenant, ++turns);
        tenant.deadlineNs = gates.nowNs() + lengths.of(tenant, level.rate(tenant));
      }
    }
  }

  /** Decides who is held back. */
  private void review() {
    long nowNs = gates.nowNs();
    boolean several = level.size() > 1;
    if (!several || isHoldingUseless()) {
      release(several);
    }
    boolean respite = !several || nowNs < respiteUntilNs;
    boolean held = false;
    double wakeInNs = Double.MAX_VALUE;
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      double lagNs = level.lag(tenant);
      double rate = level.rate(tenant);
      if (tenant.heldBack) {
        tenant.heldBack = lagNs < 0;
        respiteNs = tenant.heldBack ? respiteNs : SHORTEST_RESPITE_NS; // it was of use
      } else {
        tenant.heldBack = !respite && lagNs <= -TurnLength.ACCURACY_NS;
      }
      held |= tenant.heldBack;
      double changeInNs =
          tenant.heldBack ? -lagNs / rate : (TurnLength.ACCURACY_NS + lagNs) / (1 - rate);
      wakeInNs = Math.min(wakeInNs, changeInNs);
    }
    if (held && !holding) {
      heldTimeNs = 0;
      heldUseNs = 0;
    }
    holding = held;
    if (several) {
      double inNs = Math.max(LEAST_SHARING_WAKE_NS, Math.min(wakeInNs, MOST_SHARING_WAKE_NS));
      gates.wakeAt(nowNs + (long) inNs);
    }
  }

  /**
   * Whether those who are not held back use no more than the device's slices would give them
   * anyway.
   */
  private boolean isHoldingUseless() {
    if (!holding || heldTimeNs < TRIAL_NS) {
      return false;
    }
    int open = 0;
    for (int i = 0; i < level.size(); i++) {
      open += level.member(i).heldBack ? 0 : 1;
    }
    return heldUseNs < heldTimeNs * open / (open + 1);
  }

  /** Lets all go on. What the others were owed meanwhile they did not want. */
  private void release(boolean useless) {
    if (useless) {
      respiteUntilNs = gates.nowNs() + respiteNs;
      respiteNs = Math.min(2 * respiteNs, LONGEST_RESPITE_NS);
      for (int i = 0; i < level.size(); i++) {
        level.forgo(level.member(i), 0);
      }
    }
    for (int i = 0; i < level.size(); i++) {
      level.member(i).heldBack = false;
    }
    holding = false;
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

  /** After sharing: one of those whose gates are open has the turn. */
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
    if (alone && tenant.takesSurplus()) {
      // Nobody waits and nothing caps it: it may keep its gate open and come and go without a word.
      return;
    }
    long nowNs = gates.nowNs();
    Tenant next = level.pick();
    boolean stays = !yields && (isUnbounded(tenant) || next == tenant);
    boolean hurried = next != null && next != tenant && next.gate.isAwaited();
    if (tenant.gate.hasWork()) {
      if (isUnbounded(tenant)) {
        return;
      }
      if (nowNs >= tenant.deadlineNs || hurried) {
        if (!stays) {
          boolean ignored = gates.shut(tenant, null);
          holder = null;
          return;
        }
        tenant.deadlineNs = nowNs + lengths.of(tenant, level.rate(tenant));
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

  /** Whether nobody could get the turn when it ends, but by preempting. */
  private boolean isUnbounded(Tenant tenant) {
    return level.size() == 1
        && tenant.takesSurplus()
        && !tenant.floorTurn
        && (ofOffline || settings.offlineFloor() == 0);
  }

  private void grant() {
    Tenant best = level.pick();
    if (best == null || best.isActive() || (ofOffline && gates.isUpperBackSoon(best))) {
      return;
    }
    if (gates.tryOpen(best, false)) {
      holder = best;
      level.turnGiven(best, ++turns);
      best.deadlineNs = gates.nowNs() + lengths.of(best, level.rate(best));
      if (!(gates.runnable() == 1 && best.takesSurplus()) && !isUnbounded(best)) {
        gates.wakeAt(best.deadlineNs);
      }
    }
  }

  /** Sees to it that the first of those who are at their cap is not forgotten. */
  void wakeWhenEligible() {
    double inNs = level.size() == 0 ? Double.MAX_VALUE : level.nextEligibleInNs();
    if (inNs < 1e18) {
      gates.wakeAt(gates.nowNs() + Math.max(LEAST_WAKE_NS, (long) Math.ceil(inNs)));
    }
  }
}
