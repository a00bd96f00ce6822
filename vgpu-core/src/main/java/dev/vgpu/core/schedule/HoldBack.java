package dev.vgpu.core.schedule;

/**
 * Decides which tenants of a level are held back while gates are open together: those that got more
 * than their part, unless the others do not use the time. Confined to the scheduler's owner.
 */
final class HoldBack {
  private static final double LEAST_SHARING_WAKE_NS = 1_000_000;
  private static final double MOST_SHARING_WAKE_NS = 50_000_000;

  /** How long tenants are held back before it is judged whether that is of use. */
  private static final double TRIAL_NS = 5_000_000;

  /** If the other tenants use less than this part of the time, no tenant is held back for them. */
  private static final double LEAST_USE = 0.25;

  private static final long SHORTEST_RESPITE_NS = 50_000_000;
  private static final long LONGEST_RESPITE_NS = 1_600_000_000;

  /**
   * A tenant that is held back continues once it is less far ahead by this much. At a rate of 1/4
   * that takes 1 ms; paying back all of {@link SchedulerSettings#ACCURACY_NS} at once would stall
   * it for 18 ms.
   */
  private static final double HELD_NS = 250_000;

  private final ShareLevel level;

  /** While tenants are held back: the level's time since then, and how much of it was used. */
  private boolean holding;

  private double heldTimeNs;
  private double heldUseNs;
  private long respiteNs = SHORTEST_RESPITE_NS;
  private long respiteUntilNs = Long.MIN_VALUE;

  HoldBack(ShareLevel level) {
    this.level = level;
  }

  /** Call this once all tenants have left. */
  void reset() {
    holding = false;
    respiteNs = SHORTEST_RESPITE_NS;
    respiteUntilNs = Long.MIN_VALUE;
  }

  /** Records that time of the level has passed, and how much of it was used. */
  void passed(double timeNs, double usedNs) {
    if (holding) {
      heldTimeNs += Math.max(0, timeNs);
      heldUseNs += usedNs;
    }
  }

  /** Decides which tenants are held back. Returns when to look again at the latest. */
  long review(long nowNs) {
    boolean several = level.size() > 1;
    level.balance(); // otherwise all might be held back, and time would pass for none of them
    if (several && isHoldingUseless()) {
      respiteUntilNs = nowNs + respiteNs;
      respiteNs = Math.min(2 * respiteNs, LONGEST_RESPITE_NS);
      release();
    } else if (!several) {
      letGo();
    }
    boolean respite = !several || nowNs < respiteUntilNs;
    double boundNs = SchedulerSettings.ACCURACY_NS;
    boolean held = false;
    double wakeInNs = Double.MAX_VALUE;
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      double lagNs = level.lag(tenant);
      double rate = level.rate(tenant);
      if (tenant.heldBack) {
        tenant.heldBack = lagNs < HELD_NS - boundNs;
        if (!tenant.heldBack) {
          respiteNs = SHORTEST_RESPITE_NS; // holding it back was of use
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
    if (!several) {
      return TurnStepper.NEVER;
    }
    double inNs = Math.max(LEAST_SHARING_WAKE_NS, Math.min(wakeInNs, MOST_SHARING_WAKE_NS));
    return nowNs + (long) inNs;
  }

  /** Whether the tenants that are not held back hardly use the time that this gives them. */
  private boolean isHoldingUseless() {
    return holding && heldTimeNs >= TRIAL_NS && heldUseNs < heldTimeNs * LEAST_USE;
  }

  /** Lets all tenants continue. The others forgo what they were owed: they did not want it. */
  void release() {
    for (int i = 0; i < level.size(); i++) {
      level.forgo(level.member(i), 0);
    }
    letGo();
  }

  /** Lets all tenants continue. */
  void letGo() {
    for (int i = 0; i < level.size(); i++) {
      level.member(i).heldBack = false;
    }
    holding = false;
  }
}
