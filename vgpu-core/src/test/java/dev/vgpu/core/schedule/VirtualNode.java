package dev.vgpu.core.schedule;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** A scheduler and its tenants in virtual time, as fast as the machine can. */
final class VirtualNode {
  static final long US = 1_000;
  static final long MS = 1_000_000;
  static final long S = 1_000_000_000;

  final List<VirtualGate> gates = new ArrayList<>();
  final List<Tenant> tenants = new ArrayList<>();
  final List<String> decisions = new ArrayList<>();
  final ShareScheduler scheduler;
  private final TreeMap<Long, List<Runnable>> agenda = new TreeMap<>();
  long nowNs;
  int steps;

  VirtualNode() {
    this(0);
  }

  VirtualNode(int offlineFloorPercent) {
    this(settings(offlineFloorPercent));
  }

  VirtualNode(SchedulerSettings settings) {
    scheduler =
        new ShareScheduler(
            settings,
            (victim, by, asked) ->
                decisions.add(nowNs + " " + by.id() + " preempts " + victim.id()),
            0);
  }

  static SchedulerSettings settings(int offlineFloorPercent) {
    return new SchedulerSettings(
        2 * MS, 2 * MS, 100 * US, offlineFloorPercent / 100.0, false, 30 * S);
  }

  static VirtualGpuRequest request(
      SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .policy(policy)
            .preemptionClass(preemptionClass);
    return percent == 0 ? builder.build() : builder.computePercent(percent).build();
  }

  /** Adds a tenant that always has calls of one length, which cannot be cancelled. */
  int backlogged(SharePolicy policy, int percent, PreemptionClass preemptionClass, long callNs) {
    return add(new VirtualGate("t" + gates.size(), callNs, -1), policy, percent, preemptionClass);
  }

  /** Adds a tenant that has the calls which {@link #arrive} brings. */
  int sporadic(SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    return add(new VirtualGate("t" + gates.size(), 0, -1), policy, percent, preemptionClass);
  }

  int add(VirtualGate gate, SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    Tenant tenant = new Tenant(gate.id, gate, request(policy, percent, preemptionClass));
    gates.add(gate);
    tenants.add(tenant);
    if (gate.hasWork()) {
      at(nowNs, () -> scheduler.wanted(tenant, nowNs));
    }
    return gates.size() - 1;
  }

  /** Brings a call to a tenant at a time to come. */
  void arrive(int tenant, long atNs, long callNs) {
    at(
        atNs,
        () -> {
          gates.get(tenant).queue(callNs);
          scheduler.wanted(tenants.get(tenant), nowNs);
          gates.get(tenant).startNext();
        });
  }

  void at(long atNs, Runnable action) {
    agenda.computeIfAbsent(atNs, key -> new ArrayList<>()).add(action);
  }

  /** Lets time pass. */
  void runUntil(long endNs) {
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
      throw new AssertionError("turns overlap: open=" + open + " running=" + running);
    }
  }

  long usedNs(int tenant) {
    return gates.get(tenant).gpuTimeNs(nowNs);
  }

  /** The percent of all time that a tenant got. */
  double percent(int tenant) {
    return 100.0 * usedNs(tenant) / nowNs;
  }
}
