package dev.vgpu.core.schedule;

import dev.vgpu.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The tenants that divide one stretch of GPU time by their policies: all of class online and
 * nearline, or all of class offline. Confined to the scheduler's owner.
 *
 * <p>The division follows EEVDF (Stoica, Abdel-Wahab: "Earliest Eligible Virtual Deadline First",
 * 1995). Each tenant has a <em>lag</em>: the GPU time that an ideal division would have given it by
 * now, less what it got. Runnable tenants accrue lag at their rate: what they are guaranteed, and
 * for burst and best-effort ones an equal part of the surplus besides. A tenant is eligible while
 * its lag is not negative; of those, the one whose next turn is due first runs.
 *
 * <p>Lags are kept against two clocks, so that time passes for all tenants by two additions: {@code
 * guaranteedClock} counts the level's time, {@code surplusClock} the surplus per taker. Where there
 * are takers, the lags of the level always sum to 0: what one got too much the others got too
 * little. Without takers (only fixed shares) there is no such sum, and each lag is a token bucket.
 *
 * <p>Tenants with the same guarantee form a {@link LagGroup}, in which the largest lag is both the
 * first to be eligible and the first that is due. So a decision looks at the first of each group. A
 * guarantee is a whole percent and those of a level sum to 100 at most, so that there are no more
 * than about twenty groups however many tenants there are.
 */
final class ShareLevel {
  /** Rounding of the clocks must not make a tenant wait. */
  private static final double TOLERANCE_NS = 50;

  /** The rate by which debts shrink at least, for tenants that are guaranteed nothing. */
  private static final double LEAST_RATE = 0.01;

  /** How much of a long turn is forgotten with each shorter one. */
  private static final double FADING = 1.0 / 1024;

  private static final int PERCENTS = 101;
  private static final int KINDS = 2 * PERCENTS;

  private final SchedulerSettings settings;
  private final List<Tenant> runnable = new ArrayList<>();

  /** By class, whether it takes surplus, and percent; made when first needed. */
  private final @Nullable LagGroup[] groups =
      new @Nullable LagGroup[PreemptionClass.values().length * KINDS];

  private final List<LagGroup> busyGroups = new ArrayList<>();

  /** Those of several GPUs, in the order in which they came. */
  private final List<Tenant> gangs = new ArrayList<>();

  private int online;
  private int takers;
  private double guaranteedSum;
  private double guaranteedClock;
  private double surplusClock;

  /** Whether tenants of several GPUs have been here, which take time of it that they do not use. */
  private boolean hadGangs;

  /** By how much the level's time is behind the time in which it might have had the GPU. */
  private double behindNs;

  /** The part of it in which nobody of the level was on the GPU. */
  private double spareNs;

  /**
   * What the longest turn of late takes: so much is due to each by the time at which its turn is.
   * Were it less, those who are due at the same time would use more than they are due, one after
   * the other, while another one falls behind.
   */
  private double turnNs;

  ShareLevel(SchedulerSettings settings) {
    this.settings = settings;
    this.turnNs = settings.shortestTurnNs();
  }

  /** What each is owed when its turn is due. */
  double turnNs() {
    return turnNs;
  }

  /** All tenants have gone. */
  void reset() {
    turnNs = settings.shortestTurnNs();
  }

  int size() {
    return runnable.size();
  }

  /** One of those who have work, from 0 to {@link #size()}, in no order. */
  Tenant member(int i) {
    return runnable.get(i);
  }

  boolean hasFixed() {
    return takers < runnable.size();
  }

  /** Whether all who have work are of one class. */
  boolean isOfOneClass() {
    return online == 0 || online == runnable.size();
  }

  /** Whether all who have work are entitled to the same. */
  boolean isOfOneGroup() {
    return busyGroups.size() == 1;
  }

  /** Lets the level's time pass: {@code serviceNs} of it was given to tenants of this level. */
  void advance(double clockNs, double serviceNs) {
    if (runnable.isEmpty()) {
      return;
    }
    if (takers > 0) {
      surplusClock += (serviceNs - guaranteedSum * clockNs) / takers;
      // What others used before there were takers, and tell only now, does not count again later.
      behindNs -= Math.min(clockNs - serviceNs, Math.max(0, behindNs));
      guaranteedClock += clockNs;
    } else {
      // What two used at the same time is told by both, and passes once.
      double passedNs = hadGangs ? clockNs : Math.min(clockNs, Math.max(0, behindNs));
      guaranteedClock += passedNs;
      behindNs -= passedNs;
    }
  }

  /**
   * Time has passed in which the level might have had the GPU, whatever its clock says.
   *
   * @param isActive whether somebody of the level had it, or was about to
   */
  void passed(double ns, boolean isActive) {
    if (takers == 0 && !runnable.isEmpty()) {
      behindNs += ns;
      spareNs = isActive ? 0 : spareNs + ns;
    }
  }

  /** Whether its clock is behind, and there is no surplus, which is a part of what the GPU did. */
  boolean isBehind() {
    return takers == 0 && behindNs > 0 && !hadGangs;
  }

  /**
   * Nobody of the level is on the GPU. If nobody may run either, as all are at their cap, there is
   * time to spare. All time that passes at the cap counts, and what hand-overs took is not taken
   * off the shares.
   */
  void catchUp() {
    if (pick() == null) {
      double lostNs = Math.max(0, behindNs - spareNs);
      guaranteedClock += behindNs - lostNs + Math.min(lostNs, (double) settings.memoryNs());
      behindNs = 0;
      spareNs = 0;
    }
  }

  /**
   * Books GPU time that a tenant used. Forgives what would lock it out, or let it lock others out,
   * for too long.
   */
  void charge(Tenant tenant, double usedNs) {
    double most = rate(tenant) * settings.lockoutNs();
    double lagNs = lag(tenant);
    double left = Math.max(-most, Math.min(most, lagNs) - usedNs);
    if (tenant.isRunnable()) {
      double forgivenNs = left - (lagNs - usedNs);
      changeBy(tenant, left - lagNs);
      if (forgivenNs != 0) {
        spread(-forgivenNs);
      }
    } else {
      tenant.lagNs = left;
    }
  }

  /**
   * Lets the lags of those who have work sum to 0, where all of them take surplus: accounts of
   * those who had work a moment ago may have left a rest, and nobody is to wait for who is not
   * there.
   */
  void balance() {
    double sum = 0;
    for (int i = 0; i < runnable.size(); i++) {
      sum += lag(runnable.get(i));
    }
    spread(-sum);
  }

  /** Takes from a tenant what it is owed beyond a bound, for the others. */
  void forgo(Tenant tenant, double mostNs) {
    double excessNs = lag(tenant) - mostNs;
    if (excessNs > 0) {
      changeBy(tenant, -excessNs);
      spread(excessNs);
    }
  }

  /**
   * A tenant has the turn: of equals, the others are before it.
   *
   * @param takesNs what its turn is likely to take, with what still runs once its gate is shut
   */
  void turnGiven(Tenant tenant, long number, double takesNs) {
    turnNs -= (turnNs - settings.shortestTurnNs()) * FADING;
    turnTakes(takesNs);
    tenant.lastTurn = number;
    if (tenant.isRunnable()) {
      group(tenant).moved(tenant);
    }
  }

  /** A turn of one of them takes as long as this. */
  void turnTakes(double ns) {
    turnNs = Math.max(ns, turnNs);
  }

  /** Adds a tenant that has work from now on. */
  void join(Tenant tenant, long nowNs) {
    double idleNs = nowNs - tenant.idleSinceNs;
    double lagNs = tenant.lagNs;
    if (tenant.away) {
      tenant.away = false;
      lagNs += tenant.idleRate * Math.min(idleNs, (double) settings.memoryNs());
    } else if (lagNs > 0 && idleNs > settings.memoryNs()) {
      lagNs = 0;
    } else if (lagNs < 0) {
      lagNs = Math.min(0, lagNs + tenant.idleRate * idleNs);
    }
    spread(-lagNs);
    tenant.index = runnable.size();
    runnable.add(tenant);
    if (tenant.gate.spansGpus()) {
      gangs.add(tenant);
      hadGangs = true;
    }
    online += tenant.preemptionClass == PreemptionClass.ONLINE ? 1 : 0;
    guaranteedSum += tenant.guaranteed;
    takers += tenant.takesSurplus() ? 1 : 0;
    LagGroup group = group(tenant);
    if (group.isEmpty()) {
      group.index = busyGroups.size();
      busyGroups.add(group);
    }
    tenant.key = lagNs - accrued(group);
    group.add(tenant);
  }

  /** Removes a tenant that has no work any more. What it is owed goes to those that have. */
  void leave(Tenant tenant, long nowNs) {
    double lagNs = lag(tenant);
    tenant.idleRate = rate(tenant);
    tenant.idleSinceNs = nowNs;
    tenant.lagNs = lagNs;
    LagGroup group = group(tenant);
    group.remove(tenant);
    boolean ignored = !gangs.isEmpty() && gangs.remove(tenant);
    if (group.isEmpty()) {
      LagGroup last = busyGroups.remove(busyGroups.size() - 1);
      if (last != group) {
        busyGroups.set(group.index, last);
        last.index = group.index;
      }
      group.index = -1;
    }
    Tenant last = runnable.remove(runnable.size() - 1);
    if (last != tenant) {
      runnable.set(tenant.index, last);
      last.index = tenant.index;
    }
    tenant.index = -1;
    online -= tenant.preemptionClass == PreemptionClass.ONLINE ? 1 : 0;
    takers -= tenant.takesSurplus() ? 1 : 0;
    guaranteedSum -= tenant.guaranteed;
    if (runnable.isEmpty()) {
      guaranteedSum = 0;
      guaranteedClock = 0;
      surplusClock = 0;
      behindNs = 0;
      spareNs = 0;
    }
    spread(lagNs);
  }

  /** Who runs next, or null if nobody may: all that have work are at their cap. */
  @Nullable Tenant pick() {
    Tenant best = null;
    double bestDueNs = 0;
    boolean bestEligible = false;
    boolean bestUrgent = false;
    for (int i = 0; i < busyGroups.size(); i++) {
      LagGroup group = busyGroups.get(i);
      Tenant tenant = group.first();
      double lagNs = tenant.key + accrued(group);
      double rate = exactRate(group);
      boolean eligible = isEligible(group, lagNs);
      if (!eligible && (bestEligible || !group.takesSurplus)) {
        continue;
      }
      double dueNs = rate > 0 ? (turnNs - lagNs) / rate : Double.MAX_VALUE;
      boolean urgent = eligible && isUrgent(tenant, lagNs);
      boolean before = dueNs < bestDueNs;
      if (best != null && dueNs == bestDueNs) {
        before = tenant.lastTurn < best.lastTurn;
      }
      if (best == null || (eligible && !bestEligible) || (urgent == bestUrgent ? before : urgent)) {
        best = tenant;
        bestDueNs = dueNs;
        bestEligible = eligible;
        bestUrgent = urgent;
      }
    }
    for (int i = 0; i < gangs.size(); i++) {
      if (isHurried(gangs.get(i), best)) {
        return gangs.get(i);
      }
    }
    return best;
  }

  /** Whether a tenant waits that would run if the GPU were free: all but those at their cap. */
  boolean isAwaited() {
    for (int i = 0; i < busyGroups.size(); i++) {
      LagGroup group = busyGroups.get(i);
      Tenant tenant = group.first();
      boolean mayRun = group.takesSurplus || isEligible(group, tenant.key + accrued(group));
      if (mayRun && !tenant.isActive()) {
        return true;
      }
    }
    return false;
  }

  private boolean isEligible(LagGroup group, double lagNs) {
    return exactRate(group) > 0 ? lagNs >= -TOLERANCE_NS : lagNs > 0;
  }

  /** Whether other GPUs are kept idle for a tenant, which is entitled to a turn here. */
  private boolean isHurried(Tenant gang, @Nullable Tenant best) {
    boolean passed = best != null && best.preemptionClass.isMoreUrgentThan(gang.preemptionClass);
    return !passed && lag(gang) >= -TOLERANCE_NS && gang.gate.isAwaited();
  }

  /**
   * Whether it goes before those of its level that are less urgent. A nearline tenant that is owed
   * a whole turn does not wait any longer for each online one to have had its own.
   */
  private boolean isUrgent(Tenant tenant, double lagNs) {
    if (tenant.preemptionClass != PreemptionClass.NEARLINE) {
      return true;
    }
    double worthNs = Math.min((double) tenant.gate.leastTurnNs(), TurnLength.ACCURACY_NS);
    return lagNs >= Math.max((double) settings.shortestTurnNs(), worthNs);
  }

  /** In how many nanoseconds of the level's time the first capped tenant may run again. */
  double nextEligibleInNs() {
    double least = Double.MAX_VALUE;
    for (int i = 0; i < busyGroups.size(); i++) {
      LagGroup group = busyGroups.get(i);
      if (!group.takesSurplus && group.guaranteed > 0) {
        double lagNs = group.first().key + accrued(group);
        if (lagNs < 0) {
          least = Math.min(least, -lagNs / group.guaranteed);
        }
      }
    }
    return least;
  }

  /** What the tenant is owed; negative: what it owes. */
  double lag(Tenant tenant) {
    return tenant.isRunnable() ? tenant.key + accrued(group(tenant)) : tenant.lagNs;
  }

  /** The part of the level's time that an ideal division gives a runnable tenant now. */
  double rate(Tenant tenant) {
    return Math.max(LEAST_RATE, exactRate(group(tenant)));
  }

  /** The same without a least; 0 for who is guaranteed nothing while there is no surplus. */
  double idealRate(Tenant tenant) {
    return exactRate(group(tenant));
  }

  private double exactRate(LagGroup group) {
    double surplus = takers == 0 ? 0 : Math.max(0, 1 - guaranteedSum) / takers;
    // A sum of hundredths that should be 1 may be off by a rounding: that is no surplus.
    double part = surplus < 1e-9 ? 0 : surplus;
    return group.guaranteed + (group.takesSurplus ? part : 0);
  }

  /** By how much the lag of each in a group has grown since the clocks stood at 0. */
  private double accrued(LagGroup group) {
    return group.guaranteed * guaranteedClock + (group.takesSurplus ? surplusClock : 0);
  }

  private void changeBy(Tenant tenant, double lagNs) {
    if (tenant.isRunnable()) {
      tenant.key += lagNs;
      group(tenant).moved(tenant);
    } else {
      tenant.lagNs += lagNs;
    }
  }

  private LagGroup group(Tenant tenant) {
    LagGroup group = tenant.group;
    if (group == null) {
      int percent = (int) Math.round(tenant.guaranteed * (PERCENTS - 1));
      int kind = (tenant.takesSurplus() ? PERCENTS : 0) + percent;
      int i = urgency(tenant.preemptionClass) * KINDS + kind;
      group = groups[i];
      if (group == null) {
        group = new LagGroup(tenant.preemptionClass, tenant.takesSurplus(), tenant.guaranteed);
        groups[i] = group;
      }
      tenant.group = group;
    }
    return group;
  }

  private static int urgency(PreemptionClass preemptionClass) {
    return switch (preemptionClass) {
      case ONLINE -> 0;
      case NEARLINE -> 1;
      case OFFLINE -> 2;
    };
  }

  /** Hands lag to those who take surplus, so that the lags still sum to 0. */
  private void spread(double lagNs) {
    if (takers > 0) {
      surplusClock += lagNs / takers;
    }
  }
}
