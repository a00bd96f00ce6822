package dev.vgpu.core.metering;

import java.util.List;
import java.util.OptionalDouble;

/**
 * Estimates how much longer a tenant's work takes on the GPU beside others than alone. The estimate
 * is the recent GPU time per launch (per call, if nothing is launched), divided by the same over
 * intervals in which no other tenant used the GPU. Both are fading averages. The average of the
 * intervals alone fades more slowly, because they are rare. Written by one thread; any thread may
 * read the estimate.
 */
final class Slowdown {
  /** The weight of the past after one more interval. */
  private static final double FADES_LATELY = 0.8;

  private static final double FADES_ALONE = 0.98;

  /** The least number of intervals, and of launches in them, for an estimate. */
  private static final int LEAST_INTERVALS = 3;

  private static final double LEAST_LAUNCHES = 20;

  private static final class Average {
    private final double fades;
    private double ns;
    private double launches;
    private int intervals;

    Average(double fades) {
      this.fades = fades;
    }

    void add(long moreNs, long moreLaunches) {
      ns = ns * fades + moreNs;
      launches = launches * fades + moreLaunches;
      intervals++;
    }

    boolean isKnown() {
      return intervals >= LEAST_INTERVALS && launches >= LEAST_LAUNCHES && ns > 0;
    }

    double perLaunch() {
      return ns / launches;
    }
  }

  private final Average lately = new Average(FADES_LATELY);
  private final Average alone = new Average(FADES_ALONE);
  private Counters before = Counters.ZERO;
  private boolean begun;
  private volatile double estimate = Double.NaN;

  OptionalDouble estimate() {
    double known = estimate;
    return Double.isNaN(known) ? OptionalDouble.empty() : OptionalDouble.of(known);
  }

  /** Records what the tenants of one GPU have used until the end of an interval. */
  static void observe(List<LeaseAccount> onOneGpu) {
    int users = 0;
    for (LeaseAccount account : onOneGpu) {
      users += of(account).usedNs(account.total()) > 0 ? 1 : 0;
    }
    for (LeaseAccount account : onOneGpu) {
      of(account).observe(account.total(), users == 1);
    }
  }

  private static Slowdown of(LeaseAccount account) {
    Slowdown known = account.slowdown;
    if (known == null) {
      known = new Slowdown();
      account.slowdown = known;
    }
    return known;
  }

  private long usedNs(Counters now) {
    return begun ? now.gpuNs() - before.gpuNs() : 0;
  }

  private void observe(Counters now, boolean onlyOneUser) {
    long usedNs = usedNs(now);
    long launches = now.launches() - before.launches();
    long units = now.launches() > 0 ? launches : now.calls() - before.calls();
    if (usedNs > 0 && units > 0) {
      lately.add(usedNs, units);
      if (onlyOneUser) {
        alone.add(usedNs, units);
      }
      if (lately.isKnown() && alone.isKnown()) {
        estimate = lately.perLaunch() / alone.perLaunch();
      }
    }
    before = now;
    begun = true;
  }
}
