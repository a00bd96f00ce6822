package dev.vgpu.micrometer;

import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The values of one {@link Tenant}: the sum over its leases. Counts never fall, although the
 * tenant's leases come and go. Written under the lock of {@link PoolMeters}, read by any thread.
 */
final class TenantValues {
  /**
   * The window over which the held share is measured. A window as short as a turn would show single
   * turns.
   */
  private static final long WINDOW_NS = 5_000_000_000L;

  private static final double NS = 1e-9;
  private static final int MOST_VANISHED = 256;

  /** One reading; immutable. */
  private record Values(Counts counts, Levels levels, double held) {}

  /** Values that only grow. */
  private record Counts(
      long gpuTimeNs, long copyTimeNs, long calls, long preemptions, long launches, long denied) {
    static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0);

    static Counts of(GpuUsage usage) {
      return new Counts(
          usage.gpuTime().toNanos(),
          usage.copyTime().toNanos(),
          usage.calls(),
          usage.preemptions(),
          usage.launches(),
          usage.deniedAllocations());
    }

    /** Adds the difference between two readings of one lease. */
    Counts plus(Counts now, Counts before) {
      return new Counts(
          gpuTimeNs + Math.max(0, now.gpuTimeNs - before.gpuTimeNs),
          copyTimeNs + Math.max(0, now.copyTimeNs - before.copyTimeNs),
          calls + Math.max(0, now.calls - before.calls),
          preemptions + Math.max(0, now.preemptions - before.preemptions),
          launches + Math.max(0, now.launches - before.launches),
          denied + Math.max(0, now.denied - before.denied));
    }
  }

  /** Values that rise and fall. */
  private record Levels(
      long quota, long used, long reserved, double entitled, int running, int waiting, int leases) {
    static final Levels NONE = new Levels(0, 0, 0, 0, 0, 0, 0);

    Levels plus(GpuLease lease, boolean isFirstGpu) {
      GpuUsage usage = lease.usage();
      return new Levels(
          quota + lease.request().memory().bytes(),
          used + (isFirstGpu ? usage.memoryUsed().bytes() : 0),
          reserved + (isFirstGpu ? usage.memoryReserved().bytes() : 0),
          entitled + lease.entitledPercent() / 100,
          running + usage.running(),
          waiting + usage.waiting(),
          leases + 1);
    }
  }

  private final Map<String, Counts> lastOfLeases = new HashMap<>();

  /** The last counts of leases that are gone: their ends may be told later. */
  private final Map<String, Counts> vanished =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Counts> eldest) {
          return size() > MOST_VANISHED;
        }
      };

  private volatile Values values = new Values(Counts.NONE, Levels.NONE, Double.NaN);
  private long windowBeganNs;
  private long windowGpuTimeNs;

  /** Updates the values from a reading of all leases that the tenant has on one GPU. */
  void update(String gpu, List<GpuLease> leases, long nowNs) {
    boolean begins = lastOfLeases.isEmpty();
    Counts counts = values.counts;
    Levels levels = Levels.NONE;
    Map<String, Counts> seen = new HashMap<>();
    for (GpuLease lease : leases) {
      Counts now = Counts.of(lease.usage());
      counts = counts.plus(now, last(lease.id()));
      levels = levels.plus(lease, lease.gpu().value().equals(gpu));
      seen.put(lease.id(), now);
    }
    lastOfLeases.keySet().removeAll(seen.keySet());
    vanished.putAll(lastOfLeases);
    lastOfLeases.clear();
    lastOfLeases.putAll(seen);
    if (begins) {
      windowBeganNs = nowNs;
      windowGpuTimeNs = counts.gpuTimeNs; // without use before the first reading
    }
    double held = begins ? Double.NaN : held(counts.gpuTimeNs, nowNs);
    values = new Values(counts, levels, held);
  }

  private Counts last(String lease) {
    Counts last = lastOfLeases.get(lease);
    return last == null ? vanished.getOrDefault(lease, Counts.NONE) : last;
  }

  /** Adds what a lease used between the last reading and its end, if it is one of this tenant. */
  void ended(String lease, GpuUsage usage) {
    Map<String, Counts> known = lastOfLeases.containsKey(lease) ? lastOfLeases : vanished;
    Counts last = known.get(lease);
    if (last != null) {
      Counts end = Counts.of(usage);
      known.put(lease, end);
      values = new Values(values.counts.plus(end, last), values.levels, values.held);
    }
  }

  private double held(long gpuTimeNs, long nowNs) {
    long passedNs = nowNs - windowBeganNs;
    if (passedNs < WINDOW_NS) {
      return values.held;
    }
    double held = (double) (gpuTimeNs - windowGpuTimeNs) / passedNs;
    windowBeganNs = nowNs;
    windowGpuTimeNs = gpuTimeNs;
    return held;
  }

  double gpuTimeSeconds() {
    return values.counts.gpuTimeNs * NS;
  }

  double copyTimeSeconds() {
    return values.counts.copyTimeNs * NS;
  }

  double calls() {
    return values.counts.calls;
  }

  double preemptions() {
    return values.counts.preemptions;
  }

  double launches() {
    return values.counts.launches;
  }

  double denied() {
    return values.counts.denied;
  }

  double quota() {
    return values.levels.quota;
  }

  double used() {
    return values.levels.used;
  }

  double reserved() {
    return values.levels.reserved;
  }

  double entitled() {
    return values.levels.entitled;
  }

  /** The recently held share; NaN until a first window has passed. */
  double held() {
    return values.held;
  }

  double running() {
    return values.levels.running;
  }

  double waiting() {
    return values.levels.waiting;
  }

  double leases() {
    return values.levels.leases;
  }
}
