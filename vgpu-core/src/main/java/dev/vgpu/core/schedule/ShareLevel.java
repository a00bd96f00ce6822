package dev.vgpu.core.schedule;

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
 */
final class ShareLevel {
  /** Rounding of the clocks must not make a tenant wait. */
  private static final double TOLERANCE_NS = 1;

  /** The rate by which debts shrink at least, for tenants that are guaranteed nothing. */
  private static final double LEAST_RATE = 0.01;

  private final SchedulerSettings settings;
  private final List<Tenant> runnable = new ArrayList<>();
  private double guaranteedSum;
  private int takers;
  private double guaranteedClock;
  private double surplusClock;

  ShareLevel(SchedulerSettings settings) {
    this.settings = settings;
  }

  int size() {
    return runnable.size();
  }

  /** Lets the level's time pass: {@code serviceNs} of it was given to a tenant of this level. */
  void advance(double clockNs, double serviceNs) {
    guaranteedClock += clockNs;
    if (takers > 0) {
      surplusClock += (serviceNs - guaranteedSum * clockNs) / takers;
    }
  }

  /** Books GPU time that a tenant used, and forgives what would lock it out for too long. */
  void charge(Tenant tenant, double usedNs) {
    tenant.lagNs -= usedNs;
    double floorNs = -rate(tenant) * settings.lockoutNs();
    double lagNs = lag(tenant);
    if (lagNs < floorNs) {
      tenant.lagNs += floorNs - lagNs;
      spread(lagNs - floorNs);
    }
  }

  /** Adds a tenant that has work from now on. */
  void join(Tenant tenant, long nowNs) {
    long idleNs = nowNs - tenant.idleSinceNs;
    double lagNs = tenant.lagNs;
    if (lagNs > 0 && idleNs > settings.memoryNs()) {
      lagNs = 0;
    } else if (lagNs < 0) {
      lagNs = Math.min(0, lagNs + tenant.idleRate * idleNs);
    }
    spread(-lagNs);
    tenant.index = runnable.size();
    runnable.add(tenant);
    guaranteedSum += tenant.guaranteed;
    takers += tenant.takesSurplus() ? 1 : 0;
    mark(tenant, lagNs);
  }

  /** Removes a tenant that has no work any more. What it is owed goes to those that have. */
  void leave(Tenant tenant, long nowNs) {
    double lagNs = lag(tenant);
    tenant.idleRate = rate(tenant);
    tenant.idleSinceNs = nowNs;
    Tenant last = runnable.remove(runnable.size() - 1);
    if (last != tenant) {
      runnable.set(tenant.index, last);
      last.index = tenant.index;
    }
    tenant.index = -1;
    guaranteedSum = runnable.isEmpty() ? 0 : guaranteedSum - tenant.guaranteed;
    takers -= tenant.takesSurplus() ? 1 : 0;
    mark(tenant, lagNs);
    spread(lagNs);
  }

  /** Who runs next, or null if nobody may: all that have work are at their cap. */
  @Nullable Tenant pick() {
    Tenant best = null;
    double bestDueNs = 0;
    boolean bestEligible = false;
    for (int i = 0; i < runnable.size(); i++) {
      Tenant tenant = runnable.get(i);
      double lagNs = lag(tenant);
      double rate = exactRate(tenant);
      boolean eligible = rate > 0 ? lagNs >= -TOLERANCE_NS : lagNs > 0;
      if (!eligible && (bestEligible || !tenant.takesSurplus())) {
        continue;
      }
      double dueNs = rate > 0 ? (settings.shortestTurnNs() - lagNs) / rate : Double.MAX_VALUE;
      if (best == null
          || (eligible && !bestEligible)
          || goesBefore(tenant, dueNs, best, bestDueNs, eligible)) {
        best = tenant;
        bestDueNs = dueNs;
        bestEligible = eligible;
      }
    }
    return best;
  }

  private static boolean goesBefore(
      Tenant tenant, double dueNs, Tenant other, double otherDueNs, boolean byClass) {
    if (byClass && tenant.preemptionClass != other.preemptionClass) {
      return tenant.preemptionClass.isMoreUrgentThan(other.preemptionClass);
    }
    return dueNs < otherDueNs || (dueNs == otherDueNs && tenant.lastTurn < other.lastTurn);
  }

  /** In how many nanoseconds of the level's time the first capped tenant may run again. */
  double nextEligibleInNs() {
    double least = Double.MAX_VALUE;
    for (int i = 0; i < runnable.size(); i++) {
      Tenant tenant = runnable.get(i);
      double lagNs = lag(tenant);
      if (!tenant.takesSurplus() && lagNs < 0) {
        least = Math.min(least, -lagNs / tenant.guaranteed);
      }
    }
    return least;
  }

  /** What the tenant is owed; negative: what it owes. */
  double lag(Tenant tenant) {
    if (!tenant.isRunnable()) {
      return tenant.lagNs;
    }
    double lagNs =
        tenant.lagNs
            + tenant.guaranteed * (guaranteedClock - tenant.guaranteedMark)
            + (tenant.takesSurplus() ? surplusClock - tenant.surplusMark : 0);
    double most = rate(tenant) * settings.lockoutNs();
    if (lagNs > most) {
      mark(tenant, most);
      return most;
    }
    return lagNs;
  }

  private double rate(Tenant tenant) {
    return Math.max(LEAST_RATE, exactRate(tenant));
  }

  /** The part of the level's time that an ideal division gives the tenant now. */
  private double exactRate(Tenant tenant) {
    double surplus = takers == 0 ? 0 : Math.max(0, 1 - guaranteedSum) / takers;
    // A sum of hundredths that should be 1 may be off by a rounding: that is no surplus.
    double part = surplus < 1e-9 ? 0 : surplus;
    return tenant.guaranteed + (tenant.takesSurplus() ? part : 0);
  }

  private void mark(Tenant tenant, double lagNs) {
    tenant.lagNs = lagNs;
    tenant.guaranteedMark = guaranteedClock;
    tenant.surplusMark = surplusClock;
  }

  /** Hands lag to those who take surplus, so that the lags still sum to 0. */
  private void spread(double lagNs) {
    if (takers > 0) {
      surplusClock += lagNs / takers;
    }
  }
}
