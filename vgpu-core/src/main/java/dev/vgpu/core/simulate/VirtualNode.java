package dev.vgpu.core.simulate;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** A scheduler and its tenants in virtual time, as fast as the machine can. Not thread-safe. */
public final class VirtualNode {
  /** A microsecond, in nanoseconds. */
  public static final long US = 1_000;

  /** A millisecond, in nanoseconds. */
  public static final long MS = 1_000_000;

  /** A second, in nanoseconds. */
  public static final long S = 1_000_000_000;

  private final List<VirtualGate> gates = new ArrayList<>();
  private final List<Tenant> tenants = new ArrayList<>();
  private final List<String> decisions = new ArrayList<>();
  private final ShareScheduler scheduler;
  private final TreeMap<Long, List<Runnable>> agenda = new TreeMap<>();
  private long nowNs;
  private int steps;

  /** Makes one without an offline floor. */
  public VirtualNode() {
    this(0);
  }

  /**
   * Makes one.
   *
   * @param offlineFloorPercent the least part for offline tenants
   */
  public VirtualNode(int offlineFloorPercent) {
    this(settings(offlineFloorPercent));
  }

  /**
   * Makes one.
   *
   * @param settings what its scheduler goes by
   */
  public VirtualNode(SchedulerSettings settings) {
    scheduler =
        new ShareScheduler(
            settings,
            (victim, by, asked) ->
                decisions.add(nowNs + " " + by.id() + " preempts " + victim.id()),
            0);
  }

  /**
   * {@return what most tests go by}
   *
   * @param offlineFloorPercent the least part for offline tenants
   */
  public static SchedulerSettings settings(int offlineFloorPercent) {
    return new SchedulerSettings(
        2 * MS, 50 * MS, 100 * US, offlineFloorPercent / 100.0, false, 30 * S);
  }

  /**
   * {@return what a tenant asks for}
   *
   * @param policy its policy
   * @param percent its share; 0: none
   * @param preemptionClass its class
   */
  public static VirtualGpuRequest request(
      SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .policy(policy)
            .preemptionClass(preemptionClass);
    return percent == 0 ? builder.build() : builder.computePercent(percent).build();
  }

  /**
   * Adds a tenant that always has calls of one length, which cannot be cancelled.
   *
   * @param policy its policy
   * @param percent its share; 0: none
   * @param preemptionClass its class
   * @param callNs the length of its calls
   * @return its number
   */
  public int backlogged(
      SharePolicy policy, int percent, PreemptionClass preemptionClass, long callNs) {
    return add(new VirtualGate("t" + gates.size(), callNs, -1), policy, percent, preemptionClass);
  }

  /**
   * Adds a tenant that has the calls which {@link #arrive} brings.
   *
   * @param policy its policy
   * @param percent its share; 0: none
   * @param preemptionClass its class
   * @return its number
   */
  public int sporadic(SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    return add(new VirtualGate("t" + gates.size(), 0, -1), policy, percent, preemptionClass);
  }

  /**
   * Adds a tenant.
   *
   * @param gate shut
   * @param policy its policy
   * @param percent its share; 0: none
   * @param preemptionClass its class
   * @return its number
   */
  public int add(
      VirtualGate gate, SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    Tenant tenant = new Tenant(gate.id(), gate, request(policy, percent, preemptionClass));
    gates.add(gate);
    tenants.add(tenant);
    if (gate.hasWork()) {
      at(nowNs, () -> scheduler.wanted(tenant, nowNs));
    }
    return gates.size() - 1;
  }

  /**
   * Brings a call to a tenant at a time to come.
   *
   * @param tenant its number
   * @param atNs when
   * @param callNs how long the call runs
   */
  public void arrive(int tenant, long atNs, long callNs) {
    at(
        atNs,
        () -> {
          gates.get(tenant).queue(callNs);
          scheduler.wanted(tenants.get(tenant), nowNs);
          gates.get(tenant).startNext();
        });
  }

  /**
   * Does something at a time to come.
   *
   * @param atNs when
   * @param action what
   */
  public void at(long atNs, Runnable action) {
    agenda.computeIfAbsent(atNs, key -> new ArrayList<>()).add(action);
  }

  /**
   * Lets time pass.
   *
   * @param endNs until when
   */
  public void runUntil(long endNs) {
    while (true) {
      long nextNs = Math.min(endNs, nextEventNs());
      nowNs = Math.max(nowNs, nextNs);
      boolean over = nextEventNs() > endNs;
      for (int i = 0; i < gates.size(); i++) {
        if (gates.get(i).advance(nowNs)) {
          scheduler.drained(tenants.get(i), nowNs);
        }
      }
      while (!agenda.isEmpty() && agenda.firstKey() <= nowNs) {
        agenda.pollFirstEntry().getValue().forEach(Runnable::run);
      }
      step();
      if (over) {
        return;
      }
    }
  }

  private long nextEventNs() {
    long nextNs = scheduler.nextWakeNs();
    for (VirtualGate gate : gates) {
      nextNs = Math.min(nextNs, gate.nextEventNs());
    }
    return agenda.isEmpty() ? nextNs : Math.min(nextNs, agenda.firstKey());
  }

  private void step() {
    steps++;
    if (scheduler.doWork(nowNs) > 0) {
      Tenant holder = scheduler.holder();
      decisions.add(nowNs + " " + (holder == null ? "nobody" : holder.id()));
    }
    int open = 0;
    int running = 0;
    for (VirtualGate gate : gates) {
      open += gate.isOpen() ? 1 : 0;
      running += gate.isRunning() ? 1 : 0;
    }
    if (open > 1 || running > 1) {
      throw new IllegalStateException("turns overlap: open=" + open + " running=" + running);
    }
  }

  /** {@return its scheduler} */
  public ShareScheduler scheduler() {
    return scheduler;
  }

  /** {@return the tenants' gates, by number} */
  public List<VirtualGate> gates() {
    return gates;
  }

  /**
   * {@return a tenant's gate}
   *
   * @param tenant its number
   */
  public VirtualGate gate(int tenant) {
    return gates.get(tenant);
  }

  /** {@return the tenants, by number} */
  public List<Tenant> tenants() {
    return tenants;
  }

  /** {@return what was decided when, one line each} */
  public List<String> decisions() {
    return decisions;
  }

  /** {@return the present} */
  public long nowNs() {
    return nowNs;
  }

  /** {@return how often the scheduler was stepped} */
  public int steps() {
    return steps;
  }

  /**
   * {@return the GPU time that a tenant used}
   *
   * @param tenant its number
   */
  public long usedNs(int tenant) {
    return gates.get(tenant).gpuTimeNs(nowNs);
  }

  /**
   * {@return the percent of all time that a tenant got}
   *
   * @param tenant its number
   */
  public double percent(int tenant) {
    return 100.0 * usedNs(tenant) / nowNs;
  }
}
