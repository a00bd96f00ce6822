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
 * got {@link TurnLength#ACCURACY_NS} more than it should is held back until it has less than that;
 * but not for the sake of tenants that do not use what they get by that. Only where all are
 * entitled to the same: else holding back would be the rule, and turns are more exact. And only
 * where all have work nearly all the time: one that waits for each of its short kernels waits for a
 * slice of each other tenant with each of them, and would not get its part.
 */
final class LevelTurns {
  /** A level's clock may stand still: its next event is not looked for more often than so. */
  private static final long LEAST_WAKE_NS = 20_000;

  /** The same while somebody uses the GPU: what processes use is told in lumps, after its end. */
  private static final long LEAST_BUSY_WAKE_NS = 100_000;

  private static final double LEAST_SHARING_WAKE_NS = 1_000_000;
  private static final double MOST_SHARING_WAKE_NS = 50_000_000;

  /** What processes use after their gate was shut, as a part of a turn that is worth its cost. */
  private static final double PROCESS_OVERRUN = 0.2;

  /** Who used less than this part of its turn, as it says, is not believed. */
  private static final double LEAST_TOLD = 0.02;

  /** How long holding back is tried before it is seen whether it is of use. */
  private static final double TRIAL_NS = 5_000_000;

  /** Nobody is held back for those who use less than this part of the time then. */
  private static final double LEAST_USE = 0.25;

  private static final long SHORTEST_RESPITE_NS = 50_000_000;
  private static final long LONGEST_RESPITE_NS = 1_600_000_000;

  /**
   * Who is held back goes on once it is so much less ahead. At a quarter of the GPU's time that is
   * some three milliseconds; to pay all of it back at once would be a stall of fifty.
   */
  private static final double HELD_NS = 250_000;

  final ShareLevel level;
  final Slices slices;
  private final SchedulerSettings settings;
  private final ActiveGates gates;
  private final TurnLength lengths;
  private final Linger linger;
  private final boolean ofOffline;

  private @Nullable Tenant holder;
  private boolean sharing;

  private long turns;

  /** The time that was this level's: not what more urgent tenants used of it. */
  private double levelClock;

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
    this.slices = new Slices(gates, ofOffline);
  }

  /** All tenants have gone. */
  void reset() {
    level.reset();
    holder = null;
    sharing = false;
    turns = 0;
    levelClock = 0;
    holding = false;
    respiteNs = SHORTEST_RESPITE_NS;
    respiteUntilNs = Long.MIN_VALUE;
  }

  boolean isSharing() {
    return sharing;
  }

  @Nullable Tenant holder() {
    return holder;
  }

  /** Time has passed that was this level's, and so much of it was used. */
  void passed(double timeNs, double usedNs) {
    levelClock += timeNs;
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
        || (level.size() > 1 && mustStayShort())
        || level.hasFixed()
        || !level.isOfOneGroup()) {
      return false;
    }
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (!tenant.gate.mayOverlap() || (tenant.pauses && level.size() > 1)) {
        return false;
      }
    }
    return true;
  }

  /**
   * Whether more urgent tenants may come: what several offline ones have on the GPU would delay
   * them more than what one has.
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
        slices.begin(tenant);
        giveTurn(tenant);
      }
    }
  }

  /** Decides who is held back. */
  private void review() {
    long nowNs = gates.nowNs();
    boolean several = level.size() > 1;
    level.balance(); // else all might be held back, and no time pass for any of them
    if (!several || isHoldingUseless()) {
      release(several);
    }
    boolean respite = !several || nowNs < respiteUntilNs;
    double boundNs = TurnLength.ACCURACY_NS;
    boolean held = false;
    double wakeInNs = Double.MAX_VALUE;
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      double lagNs = level.lag(tenant);
      double rate = level.rate(tenant);
      if (tenant.heldBack) {
        tenant.heldBack = lagNs < HELD_NS - boundNs;
        if (!tenant.heldBack) {
          respiteNs = SHORTEST_RESPITE_NS; // it was of use
        }
      } else {
        tenant.heldBack = !respite && lagNs <= -boundNs;
      }
      held |= tenant.heldBack;
      double changeInNs =
          tenant.heldBack ? (HELD_NS - boundNs - lagNs) / rate : (boundNs + lagNs) / (1 - rate);
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

  /** Whether those who are not held back hardly use what they get by that. */
  private boolean isHoldingUseless() {
    return holding && heldTimeNs >= TRIAL_NS && heldUseNs < heldTimeNs * LEAST_USE;
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
    if (alone && tenant.takesSurplus()) {
      // Nobody waits and nothing caps it: it may keep its gate open and come and go without a word.
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
   * Books a turn in which a tenant said that it worked, and told next to nothing of what it used:
   * one that cannot be measured, or does not tell, must not have the GPU for nothing. What it tells
   * later is paid by that.
   */
  private boolean hasBeenSilent(Tenant tenant) {
    // While the last work of the turn before ended, it did not have the GPU to itself.
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
   * What a tenant is owed does not grow in its own turn: what it left unused it did not want. Else
   * it would save that up, and others would wait for it for long. What it has used and not told yet
   * is allowed for.
   */
  private void forgoPauses(Tenant tenant) {
    double untoldNs = TurnLength.ACCURACY_NS + 2 * tenant.lumpNs;
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

  /** For how long a gate is open in a turn: what still runs when it is shut counts as well. */
  private long openNs(Tenant tenant) {
    double turnNs = lengths.of(tenant, level.rate(tenant));
    double overrunNs =
        tenant.overrunNs < 0
            ? tenant.gate.leastTurnNs() * PROCESS_OVERRUN
            : Math.min(tenant.overrunNs, turnNs);
    return (long) Math.max((double) settings.shortestTurnNs(), turnNs - overrunNs);
  }

  /** Whether nobody could get the turn when it ends, but by preempting. */
  private boolean isUnbounded(Tenant tenant) {
    return level.size() == 1
        && tenant.takesSurplus()
        && !tenant.floorTurn
        && (ofOffline || settings.offlineFloor() == 0);
  }

  /** Gives a turn to who is next, whatever has kept it from having one. */
  void forceTurn() {
    release(false);
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
      holder = best;
      best.prepaidNs = 0;
      beginTurn(best);
      giveTurn(best);
      if (!(gates.runnable() == 1 && best.takesSurplus()) && !isUnbounded(best)) {
        gates.wakeAt(best.deadlineNs);
      }
    }
  }

  /** Sees to it that the first of those who are at their cap is not forgotten. */
  void wakeWhenEligible() {
    double inNs = level.size() == 0 ? Double.MAX_VALUE : level.nextEligibleInNs();
    if (inNs < 1e18) {
      long leastNs = gates.size() == 0 ? LEAST_WAKE_NS : LEAST_BUSY_WAKE_NS;
      gates.wakeAt(gates.nowNs() + Math.max(leastNs, (long) Math.ceil(inNs)));
    }
  }
}
