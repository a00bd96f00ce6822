package dev.vgpu.core.schedule;

import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The tenants that divide one stretch of GPU time by their policies: all of class online and
 * nearline, or all of class offline. Confined to the scheduler's owner.
 *
 * <p>The division follows EEVDF (Stoica, Abdel-Wahab: "Earliest Eligible Virtual Deadline First",
 * 1995). Each tenant has a <em>lag</em>: the GPU time that an ideal division would have given it by
 * now, less what it got. A runnable tenant accrues lag at its rate: its guarantee and, for burst
 * and best effort, an equal part of the surplus. A tenant is eligible while its lag is not
 * negative. Of the eligible tenants, the one whose next turn is due first runs.
 *
 * <p>Lags are kept relative to two clocks, so that time passes for all tenants with two additions:
 * the {@link LevelClock} counts the level's time, {@code surplusClock} the surplus per taker. If
 * there are takers, the lags of the level always sum to 0: what one tenant got in excess, the
 * others lack. Without takers (only fixed shares) there is no such sum, and each lag is a token
 * bucket.
 *
 * <p>Tenants with the same guarantee form a {@link LagGroup}. Within a group, the tenant with the
 * largest lag is the first to be eligible and the first to be due, so a decision looks only at the
 * first tenant of each group. Guarantees are whole percents, and those of a level sum to at most
 * 100. So there are no more than about twenty groups, however many tenants there are.
 */
final class ShareLevel {
  /** Rounding of the clocks must not make a tenant wait. */
  private static final double TOLERANCE_NS = 50;

  /** The least rate at which a debt shrinks, for tenants without a guarantee. */
  private static final double LEAST_RATE = 0.01;

  /** The part of a long turn's excess that is forgotten with each later turn. */
  private static final double FADING = 1.0 / 1024;

  private static final int PERCENTS = 101;
  private static final int KINDS = 2 * PERCENTS;

  private final SchedulerSettings settings;
  private final LevelClock clock;
  private final List<Tenant> runnable = new ArrayList<>();

  /** Indexed by whether nearline, whether surplus is taken, and percent; created on first use. */
  private final @Nullable LagGroup[] groups = new @Nullable LagGroup[2 * KINDS];

  private final List<LagGroup> busyGroups = new ArrayList<>();

  /** The tenants of several GPUs, in order of arrival. */
  private final List<Tenant> gangs = new ArrayList<>();

  private int online;
  private int takers;
  private double guaranteedSum;
  private double surplusClock;

  /** Whether this level has ever had gangs. They take time of it that they do not use. */
  private boolean hadGangs;

  /**
   * What the longest recent turn takes: a tenant is owed this much when its turn is due. If it were
   * less, tenants that are due at the same time would use more than they are due, one after the
   * other, while another falls behind.
   */
  private double turnNs;

  ShareLevel(SchedulerSettings settings) {
    this.settings = settings;
    this.clock = new LevelClock(settings);
    this.turnNs = settings.shortestTurnNs();
  }

  /** What a tenant is owed when its turn is due. */
  double turnNs() {
    return turnNs;
  }

  /** Call this once all tenants have left. */
  void reset() {
    hadGangs = false;
    turnNs = settings.shortestTurnNs();
  }

  int size() {
    return runnable.size();
  }

  /** A tenant with work; the index is from 0 to below {@link #size()}, in no order. */
  Tenant member(int i) {
    return runnable.get(i);
  }

  boolean hasFixed() {
    return takers < runnable.size();
  }

  /** Whether all tenants with work are online, or none is. */
  boolean isOfOneClass() {
    return online == 0 || online == runnable.size();
  }

  /** Advances the level's time by {@code clockNs}. Its tenants used {@code serviceNs} of it. */
  void advance(double clockNs, double serviceNs) {
    if (runnable.isEmpty()) {
      return;
    }
    if (takers > 0) {
      double allNs = clock.advance(clockNs, serviceNs, guaranteedSum);
      surplusClock += (serviceNs - guaranteedSum * allNs) / takers;
    } else {
      clock.advanceFixed(clockNs, hadGangs);
    }
  }

  /** Records time that a floor turn took from this level. */
  void lost(double ns) {
    clock.lost(ns);
  }

  /**
   * Records time in which the level could have had the GPU, whatever its clock says.
   *
   * @param isActive whether a tenant of the level had the GPU, or was about to
   */
  void passed(double ns, boolean isActive) {
    if (takers > 0) {
      clock.passed(ns);
    } else if (!runnable.isEmpty()) {
      clock.passedFixed(ns, isActive);
    }
  }

  /** Records that time passed while a tenant of any level was on the GPU, and what all used. */
  void told(double passedNs, double usedNs) {
    clock.told(passedNs, usedNs);
  }

  /** Records that no tenant of any level is on the GPU. */
  void idle() {
    clock.idle();
  }

  /**
   * Whether the clock is behind and no tenant takes surplus, which would be a part of the use, not
   * of elapsed time.
   */
  boolean isBehind() {
    return takers == 0 && clock.isBehind() && !hadGangs;
  }

  /**
   * Call this while no tenant of the level is on the GPU: if all are at their cap, it catches up.
   */
  void catchUp() {
    if (pick() != null) {
      return;
    }
    double wasBehindNs = clock.behindNs();
    double advancedNs = clock.catchUp();
    for (int i = 0; i < runnable.size(); i++) {
      Tenant tenant = runnable.get(i);
      if (tenant.beforeNs != 0) {
        changeBy(tenant, tenant.guaranteed * LevelClock.moreNs(tenant, wasBehindNs, advancedNs));
        tenant.beforeNs = 0;
      }
    }
  }

  /**
   * What a tenant that leaves is owed. The clock may have caught up with time in which the tenant
   * was not here: that is taken back. If no other tenant has work, there is time to spare, as if
   * all were at their cap: what the tenant lost to hand-overs pays back what it owes. Otherwise it
   * is remembered.
   */
  private double settledLag(Tenant tenant) {
    double lagNs = lag(tenant);
    double ownNs = takers > 0 || hadGangs ? 0 : clock.ownNs(tenant);
    tenant.beforeNs = 0;
    tenant.lostNs = 0;
    if (ownNs < 0) {
      return lagNs + tenant.guaranteed * ownNs;
    }
    if (runnable.size() > 1) {
      tenant.lostNs = Math.min(ownNs, (double) settings.memoryNs());
      return lagNs;
    }
    return paidBack(lagNs, tenant.guaranteed * ownNs);
  }

  /** {@return the lag after a debt was paid back, and no more than that} */
  static double paidBack(double lagNs, double ns) {
    return lagNs < 0 ? Math.min(0, lagNs + ns) : lagNs;
  }

  /**
   * Books GPU time that a tenant used. Forgives a debt that would lock the tenant out for too long,
   * and a credit that would let it lock others out for too long.
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
   * Makes the lags of the tenants with work sum to 0, if all of them take surplus. Tenants that had
   * work a moment ago may have left a remainder, and no tenant is to wait for an absent one.
   */
  void balance() {
    double sum = 0;
    for (int i = 0; i < runnable.size(); i++) {
      sum += lag(runnable.get(i));
    }
    spread(-sum);
  }

  /** Reduces what a tenant is owed to a bound, in favour of the others. */
  void forgo(Tenant tenant, double mostNs) {
    double excessNs = lag(tenant) - mostNs;
    if (excessNs > 0) {
      changeBy(tenant, -excessNs);
      spread(excessNs);
    }
  }

  /**
   * Records that a tenant got the turn. Among equals, the others now go before it.
   *
   * @param takesNs what the turn is likely to take, including work that still runs after its gate
   *     is shut
   */
  void turnGiven(Tenant tenant, long number, double takesNs) {
    turnNs -= (turnNs - settings.shortestTurnNs()) * FADING;
    turnTakes(takesNs);
    tenant.lastTurn = number;
    if (tenant.isRunnable()) {
      group(tenant).moved(tenant);
    }
  }

  /** Records how long a turn of one of the tenants takes. */
  void turnTakes(double ns) {
    turnNs = Math.max(ns, turnNs);
  }

  /** Adds a tenant that now has work. */
  void join(Tenant tenant, long nowNs) {
    double idleNs = nowNs - tenant.idleSinceNs;
    double lagNs = tenant.lagNs;
    if (runnable.isEmpty()) {
      lagNs = paidBack(lagNs, tenant.guaranteed * tenant.lostNs);
      tenant.lostNs = 0;
    }
    clock.begin(tenant);
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
    if (takers == 0 && tenant.takesSurplus()) {
      clock.takersCame();
    }
    takers += tenant.takesSurplus() ? 1 : 0;
    LagGroup group = group(tenant);
    if (group.isEmpty()) {
      group.index = busyGroups.size();
      busyGroups.add(group);
    }
    tenant.key = lagNs - accrued(group);
    group.add(tenant);
  }

  /** Removes a tenant that has no more work. What it is owed goes to the remaining tenants. */
  void leave(Tenant tenant, long nowNs) {
    double lagNs = settledLag(tenant);
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
    if (takers == 0 && tenant.takesSurplus()) {
      clock.takersLeft();
    }
    guaranteedSum -= tenant.guaranteed;
    if (runnable.isEmpty()) {
      guaranteedSum = 0;
      surplusClock = 0;
      clock.reset();
    }
    spread(lagNs);
  }

  /** The tenant to run next, or null if none may run: all tenants with work are at their cap. */
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

  /**
   * Whether a waiting tenant would run if the GPU were free, that is, one not at its cap.
   *
   * @param except a tenant that does not count, or null
   */
  boolean isAwaited(@Nullable Tenant except) {
    for (int i = 0; i < busyGroups.size(); i++) {
      LagGroup group = busyGroups.get(i);
      Tenant tenant = group.firstWaiting(except);
      if (tenant != null
          && (group.takesSurplus || isEligible(group, tenant.key + accrued(group)))) {
        return true;
      }
    }
    return false;
  }

  /** Whether all tenants with work yield by themselves. */
  boolean allYield() {
    for (int i = 0; i < runnable.size(); i++) {
      if (!runnable.get(i).gate.yieldsByItself()) {
        return false;
      }
    }
    return true;
  }

  private boolean isEligible(LagGroup group, double lagNs) {
    return exactRate(group) > 0 ? lagNs >= -TOLERANCE_NS : lagNs > 0;
  }

  /** Whether other GPUs are kept idle for a gang that is entitled to a turn here. */
  private boolean isHurried(Tenant gang, @Nullable Tenant best) {
    boolean passed = best != null && best.preemptionClass.isMoreUrgentThan(gang.preemptionClass);
    return !passed && lag(gang) >= -TOLERANCE_NS && gang.gate.isAwaited();
  }

  /**
   * Whether a tenant goes before less urgent ones of its level. A nearline tenant that is owed a
   * whole turn no longer waits for every online tenant to have had one.
   */
  private boolean isUrgent(Tenant tenant, double lagNs) {
    if (tenant.preemptionClass != PreemptionClass.NEARLINE) {
      return true;
    }
    double worthNs = Math.min((double) tenant.gate.leastTurnNs(), SchedulerSettings.ACCURACY_NS);
    return lagNs >= Math.max((double) settings.shortestTurnNs(), worthNs);
  }

  /** Nanoseconds of the level's time until the first capped tenant may run again. */
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

  /** What the tenant is owed; negative if it owes. */
  double lag(Tenant tenant) {
    return tenant.isRunnable() ? tenant.key + accrued(group(tenant)) : tenant.lagNs;
  }

  /** The part of the level's time that an ideal division gives a runnable tenant now. */
  double rate(Tenant tenant) {
    return Math.max(LEAST_RATE, exactRate(group(tenant)));
  }

  /**
   * The same without a lower limit: 0 for a tenant without a guarantee while there is no surplus.
   */
  double idealRate(Tenant tenant) {
    return exactRate(group(tenant));
  }

  private double exactRate(LagGroup group) {
    double surplus = takers == 0 ? 0 : Math.max(0, 1 - guaranteedSum) / takers;
    // A sum of hundredths that should be 1 may be off by rounding, which is not surplus.
    double part = surplus < 1e-9 ? 0 : surplus;
    return group.guaranteed + (group.takesSurplus ? part : 0);
  }

  /** How much the lag of each tenant of a group has grown since the clocks were at 0. */
  private double accrued(LagGroup group) {
    return group.guaranteed * clock.ns() + (group.takesSurplus ? surplusClock : 0);
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
      int i = (tenant.preemptionClass == PreemptionClass.NEARLINE ? KINDS : 0) + kind;
      group = groups[i];
      if (group == null) {
        group = new LagGroup(tenant.preemptionClass, tenant.takesSurplus(), tenant.guaranteed);
        groups[i] = group;
      }
      tenant.group = group;
    }
    return group;
  }

  /** Distributes lag over the tenants that take surplus, so that all lags still sum to 0. */
  private void spread(double lagNs) {
    if (takers > 0) {
      surplusClock += lagNs / takers;
    }
  }
}
