package dev.vgpu.core.reclaim;

import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A GPU's memory and its tenants in virtual time, with a planner. */
final class VirtualMemory {
  static final long MS = 1_000_000;
  static final long S = 1_000 * MS;
  static final long STEP_NS = 100 * MS;

  /** How a tenant behaves under reclaim. */
  enum Manner {
    /** Has a handler that frees half of its memory. */
    YIELDS,
    /** Has a handler that never answers. */
    IGNORES_ASKING,
    /** Has no handler; can be suspended. */
    SUSPENDABLE,
    /** Its suspension fails. */
    RESISTS,
    /** Its suspension neither fails nor finishes. */
    HANGS_IN_SUSPENSION,
    /** Cannot be suspended; terminates when it is told. */
    ENDS,
    /** Ends only when it is killed. */
    IGNORES_SIGTERM,
    /** Is restarted whenever it has ended. */
    RESPAWNS,
    /** Cannot be reclaimed from. */
    UNTOUCHABLE
  }

  static final class Virtual {
    final String id;
    final PreemptionClass preemptionClass;
    final Manner manner;
    long bytes;
    long workNs;
    boolean suspended;
    long respawnBytes;
    long pid = 1;

    Virtual(String id, PreemptionClass preemptionClass, Manner manner, long bytes, long workNs) {
      this.id = id;
      this.preemptionClass = preemptionClass;
      this.manner = manner;
      this.bytes = bytes;
      this.respawnBytes = bytes;
      this.workNs = workNs;
    }

    private TenantReading reading() {
      boolean asks = manner == Manner.YIELDS || manner == Manner.IGNORES_ASKING;
      boolean suspends =
          switch (manner) {
            case SUSPENDABLE, RESISTS, HANGS_IN_SUSPENSION -> true;
            default -> false;
          };
      return new TenantReading(
          id,
          id,
          preemptionClass,
          bytes,
          workNs,
          asks,
          suspends,
          manner == Manner.UNTOUCHABLE || bytes == 0 ? Set.of() : Set.of(pid),
          suspended);
    }
  }

  /** An action, its time, and the free memory at that time. */
  record Done(long atNs, long freeBytes, ReclaimAction action) {}

  final ReclaimSettings settings;
  final ReclaimPlanner planner;
  final Map<String, Virtual> tenants = new LinkedHashMap<>();
  final List<Done> done = new ArrayList<>();
  final Set<String> heldBack = new LinkedHashSet<>();
  long nowNs = 7;

  VirtualMemory(ReclaimSettings settings) {
    this.settings = settings;
    this.planner = new ReclaimPlanner(settings);
  }

  Virtual add(String id, PreemptionClass preemptionClass, Manner manner, long bytes, long workNs) {
    Virtual tenant = new Virtual(id, preemptionClass, manner, bytes, workNs);
    tenants.put(id, tenant);
    return tenant;
  }

  long free() {
    long used = 0;
    for (Virtual tenant : tenants.values()) {
      used += tenant.suspended ? 0 : tenant.bytes;
    }
    return settings.usableBytes() - used;
  }

  /** Takes one step, and returns its actions. */
  List<ReclaimAction> step() {
    nowNs += STEP_NS;
    for (Virtual tenant : tenants.values()) {
      if (tenant.manner == Manner.RESPAWNS && tenant.bytes == 0) {
        tenant.bytes = Math.min(tenant.respawnBytes, Math.max(0, free()));
      }
    }
    long free = free();
    List<TenantReading> readings = tenants.values().stream().map(Virtual::reading).toList();
    List<ReclaimAction> actions = planner.doWork(nowNs, free, readings);
    for (ReclaimAction action : actions) {
      done.add(new Done(nowNs, free, action));
      perform(action);
    }
    return actions;
  }

  void run(long forNs) {
    for (long untilNs = nowNs + forNs; nowNs < untilNs; ) {
      List<ReclaimAction> ignored = step();
    }
  }

  private void perform(ReclaimAction action) {
    if (action instanceof ReclaimAction.Ask ask) {
      Virtual tenant = tenants.get(ask.id());
      if (tenant.manner == Manner.YIELDS) {
        tenant.bytes /= 2;
        planner.answered(ask.id());
      }
    } else if (action instanceof ReclaimAction.Suspend suspend) {
      Virtual tenant = tenants.get(suspend.id());
      if (tenant.manner == Manner.SUSPENDABLE) {
        tenant.suspended = true;
      } else if (tenant.manner == Manner.RESISTS) {
        planner.suspendFailed(suspend.id(), "it resists");
      }
    } else if (action instanceof ReclaimAction.Resume resume) {
      Virtual tenant = tenants.get(resume.id());
      if (tenant.bytes <= free()) {
        tenant.suspended = false;
      } else {
        planner.resumeFailed(resume.id(), nowNs);
      }
    } else if (action instanceof ReclaimAction.End end) {
      Virtual tenant = tenants.get(end.id());
      if (end.kill() || tenant.manner != Manner.IGNORES_SIGTERM) {
        tenant.bytes = 0;
        tenant.pid++;
      }
    } else if (action instanceof ReclaimAction.HoldBack hold) {
      heldBack.add(hold.name());
    } else if (action instanceof ReclaimAction.LetBack let) {
      heldBack.remove(let.name());
    }
  }

  /** The tenants of all actions of a kind, in order. */
  List<String> order(Class<? extends ReclaimAction> kind) {
    List<String> ids = new ArrayList<>();
    for (Done each : done) {
      if (kind.isInstance(each.action)) {
        ids.add(idOf(each.action));
      }
    }
    return ids;
  }

  static String idOf(ReclaimAction action) {
    if (action instanceof ReclaimAction.Ask ask) {
      return ask.id();
    } else if (action instanceof ReclaimAction.Suspend suspend) {
      return suspend.id();
    } else if (action instanceof ReclaimAction.Resume resume) {
      return resume.id();
    } else if (action instanceof ReclaimAction.End end) {
      return end.id();
    }
    return "";
  }
}
