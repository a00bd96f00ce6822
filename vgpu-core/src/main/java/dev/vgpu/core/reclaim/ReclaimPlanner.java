package dev.vgpu.core.reclaim;

import static dev.vgpu.core.reclaim.VictimProgress.NOT;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Decides, for one GPU, from which tenants memory is reclaimed and when they may come back. A state
 * machine: the time and the readings are arguments. The package documentation describes the rules.
 * Confined to one thread.
 */
public final class ReclaimPlanner {
  /** How long a killed process may take to disappear before the planner moves on. */
  static final long GONE_NS = 2_000_000_000;

  private static final List<PreemptionClass> VICTIMS =
      List.of(PreemptionClass.OFFLINE, PreemptionClass.NEARLINE);

  private static final Comparator<TenantReading> LEAST_LOSS_FIRST =
      Comparator.comparingLong(TenantReading::workNs)
          .thenComparing(TenantReading::memoryBytes, Comparator.reverseOrder())
          .thenComparing(TenantReading::id);

  private final ReclaimSettings settings;
  private final GrowthForecast growth = new GrowthForecast();
  private final Map<String, VictimProgress> progress = new HashMap<>();
  private final Set<String> held = new LinkedHashSet<>();

  /** The suspended tenants for which this GPU has had room at the last step. */
  private final Set<String> fitting = new HashSet<>();

  private boolean reclaiming;
  private boolean foretold;
  private long highSinceNs = NOT;

  // State of the current step.
  private final List<ReclaimAction> actions = new ArrayList<>();
  private long freeBytes;

  /**
   * Creates a planner.
   *
   * @param settings its settings
   */
  public ReclaimPlanner(ReclaimSettings settings) {
    this.settings = Objects.requireNonNull(settings, "settings");
  }

  /**
   * {@return the actions to take now}
   *
   * @param nowNs the current time; never decreases
   * @param free the free memory of the GPU, in bytes
   * @param tenants all tenants of the GPU, suspended or not
   */
  public List<ReclaimAction> doWork(long nowNs, long free, List<TenantReading> tenants) {
    actions.clear();
    fitting.clear();
    freeBytes = free;
    observe(nowNs, tenants);
    // Memory of suspended tenants counts as used, so suspending and resuming are not growth.
    long suspendedBytes =
        tenants.stream()
            .filter(TenantReading::suspended)
            .mapToLong(TenantReading::memoryBytes)
            .sum();
    growth.add(nowNs, suspendedBytes - free);
    long foreseenBytes = free - growth.growthBytes(settings.forecastNs());
    if (!reclaiming && foreseenBytes < settings.lowBytes()) {
      reclaiming = true;
      foretold = free >= settings.lowBytes();
    } else if (reclaiming && free >= settings.highBytes() && foreseenBytes >= settings.lowBytes()) {
      reclaiming = false;
      progress.values().forEach(VictimProgress::rest);
    }
    endThoseWhoCameBack(nowNs, tenants);
    if (reclaiming) {
      climb(nowNs, tenants);
    }
    letBack(nowNs, tenants);
    return List.copyOf(actions);
  }

  /** {@return whether memory is being reclaimed} */
  public boolean isReclaiming() {
    return reclaiming;
  }

  /**
   * {@return whether this GPU could take a suspended tenant back at the last step} A tenant of
   * several GPUs comes back only when each of them can.
   *
   * @param id the virtual GPU
   */
  public boolean canTakeBack(String id) {
    return fitting.contains(id);
  }

  /**
   * Records that an owner has freed what it can.
   *
   * @param id the virtual GPU
   */
  public void answered(String id) {
    find(id).ifPresent(victim -> victim.answered = true);
  }

  /**
   * Records that a tenant could not be suspended and keeps running.
   *
   * @param id the virtual GPU
   * @param reason why
   */
  public void suspendFailed(String id, String reason) {
    find(id)
        .ifPresent(
            victim -> {
              victim.suspendingNs = NOT;
              victim.suspendFailure = reason.isEmpty() ? "for no known reason" : reason;
            });
  }

  /**
   * Records that a tenant could not be resumed and is still suspended.
   *
   * @param id the virtual GPU
   * @param nowNs the current time
   */
  public void resumeFailed(String id, long nowNs) {
    find(id)
        .ifPresent(
            victim -> {
              victim.resumingNs = NOT;
              victim.resumeNotBeforeNs = nowNs + settings.holdBackNs();
            });
  }

  private Optional<VictimProgress> find(String id) {
    return Optional.ofNullable(progress.get(id));
  }

  private VictimProgress of(TenantReading tenant) {
    return Objects.requireNonNull(progress.get(tenant.id()));
  }

  /** Updates the progress of each tenant from the readings. */
  private void observe(long nowNs, List<TenantReading> tenants) {
    progress.keySet().retainAll(tenants.stream().map(TenantReading::id).toList());
    for (TenantReading tenant : tenants) {
      VictimProgress victim = progress.computeIfAbsent(tenant.id(), id -> new VictimProgress());
      if (tenant.suspended()) {
        victim.suspendingNs = NOT;
        if (victim.suspendedSinceNs == NOT) {
          victim.suspendedSinceNs = nowNs;
        }
      } else {
        victim.suspendedSinceNs = NOT;
        victim.resumingNs = NOT;
      }
      victim.gone =
          victim.endingNs != NOT && Collections.disjoint(victim.ended, tenant.processes());
    }
  }

  // ---- up the ladder

  private void climb(long nowNs, List<TenantReading> tenants) {
    boolean resuming =
        tenants.stream().anyMatch(tenant -> tenant.suspended() && of(tenant).resumingNs != NOT);
    if (resuming) {
      return; // its memory use is not known yet
    }
    for (PreemptionClass victims : VICTIMS) {
      List<TenantReading> candidates =
          tenants.stream()
              .filter(tenant -> tenant.preemptionClass() == victims && tenant.onGpuBytes() > 0)
              .sorted(LEAST_LOSS_FIRST)
              .toList();
      if (ask(nowNs, candidates) || suspend(nowNs, candidates) || end(nowNs, candidates)) {
        return;
      }
    }
  }

  /** Asks the owners that have not been asked yet; returns whether an answer is pending. */
  private boolean ask(long nowNs, List<TenantReading> candidates) {
    boolean awaited = false;
    for (TenantReading tenant : candidates) {
      VictimProgress victim = of(tenant);
      if (!tenant.canAsk() || settings.askNs() == 0 || victim.gone) {
        continue;
      }
      if (victim.askedNs == NOT) {
        victim.askedNs = nowNs;
        actions.add(new ReclaimAction.Ask(tenant.id(), missingBytes(), shortage()));
      }
      awaited |= !victim.answered && nowNs - victim.askedNs < settings.askNs();
    }
    return awaited;
  }

  /** Suspends one tenant that can be suspended; returns whether a suspension is pending. */
  private boolean suspend(long nowNs, List<TenantReading> candidates) {
    for (TenantReading tenant : candidates) {
      VictimProgress victim = of(tenant);
      if (victim.suspendingNs == NOT) {
        continue;
      }
      if (nowNs - victim.suspendingNs < settings.suspendNs()) {
        return true;
      }
      suspendFailed(tenant.id(), "not within " + millis(settings.suspendNs()));
    }
    if (settings.suspendNs() == 0) {
      return false;
    }
    for (TenantReading tenant : candidates) {
      VictimProgress victim = of(tenant);
      boolean free = victim.endingNs == NOT && victim.suspendFailure.isEmpty();
      if (tenant.canSuspend() && free) {
        victim.suspendingNs = nowNs;
        String reason = shortage() + "; " + choice(tenant, victim);
        actions.add(
            new ReclaimAction.Suspend(tenant.id(), settings.suspendNs(), missingBytes(), reason));
        holdBack(tenant, reason);
        return true;
      }
    }
    return false;
  }

  /** Ends one tenant that could not be suspended; returns whether its end is pending. */
  private boolean end(long nowNs, List<TenantReading> candidates) {
    for (TenantReading tenant : candidates) {
      VictimProgress victim = of(tenant);
      if (victim.endingNs != NOT && !victim.gone && isEndAwaited(nowNs, tenant, victim)) {
        return true;
      }
    }
    for (TenantReading tenant : candidates) {
      VictimProgress victim = of(tenant);
      if (!tenant.processes().isEmpty() && victim.endingNs == NOT) {
        String why =
            victim.suspendFailure.isEmpty()
                ? "it cannot be suspended"
                : "it could not be suspended: " + victim.suspendFailure;
        String reason = shortage() + "; " + choice(tenant, victim) + "; " + why;
        end(nowNs, tenant, victim, settings.endNs() == 0, reason);
        holdBack(tenant, reason);
        return true;
      }
    }
    return false;
  }

  private boolean isEndAwaited(long nowNs, TenantReading tenant, VictimProgress victim) {
    if (victim.killedNs == NOT && nowNs - victim.endingNs >= settings.endNs()) {
      String reason = "it was told to end and did not terminate within " + millis(settings.endNs());
      end(nowNs, tenant, victim, true, reason);
    }
    return victim.killedNs == NOT || nowNs - victim.killedNs < GONE_NS;
  }

  private void end(
      long nowNs, TenantReading tenant, VictimProgress victim, boolean kill, String reason) {
    victim.endingNs = victim.endingNs == NOT ? nowNs : victim.endingNs;
    victim.killedNs = kill ? nowNs : victim.killedNs;
    victim.ended = tenant.processes();
    actions.add(new ReclaimAction.End(tenant.id(), kill, reason));
  }

  /** Kills tenants that hold memory again after they were ended, though they are held back. */
  private void endThoseWhoCameBack(long nowNs, List<TenantReading> tenants) {
    for (TenantReading tenant : tenants) {
      VictimProgress victim = of(tenant);
      boolean again = victim.gone && held.contains(tenant.name()) && tenant.onGpuBytes() > 0;
      boolean victimStill = VICTIMS.contains(tenant.preemptionClass());
      if (again && victimStill && !tenant.processes().isEmpty()) {
        end(nowNs, tenant, victim, true, "it was started again while it is held back");
      }
    }
  }

  private void holdBack(TenantReading tenant, String reason) {
    if (held.add(tenant.name())) {
      actions.add(new ReclaimAction.HoldBack(tenant.name(), reason));
    }
  }

  // ---- and down again

  private void letBack(long nowNs, List<TenantReading> tenants) {
    if (reclaiming || freeBytes < settings.highBytes()) {
      highSinceNs = NOT;
      return;
    }
    highSinceNs = highSinceNs == NOT ? nowNs : highSinceNs;
    if (nowNs - highSinceNs < settings.holdBackNs()) {
      return;
    }
    held.forEach(name -> actions.add(new ReclaimAction.LetBack(name)));
    held.clear();
    progress.values().forEach(VictimProgress::forgive);
    resumeOne(nowNs, tenants);
  }

  private void resumeOne(long nowNs, List<TenantReading> tenants) {
    tenants.stream()
        .filter(tenant -> tenant.suspended() && hasRoom(tenant))
        .forEach(tenant -> fitting.add(tenant.id()));
    List<TenantReading> suspended =
        tenants.stream().filter(tenant -> tenant.suspended() && !tenant.kept()).toList();
    if (suspended.stream().anyMatch(tenant -> of(tenant).resumingNs != NOT)) {
      return;
    }
    suspended.stream()
        .filter(
            tenant -> of(tenant).resumeNotBeforeNs == NOT || nowNs >= of(tenant).resumeNotBeforeNs)
        .filter(tenant -> fitting.contains(tenant.id()))
        .min(
            Comparator.<TenantReading>comparingInt(
                    tenant -> -VICTIMS.indexOf(tenant.preemptionClass()))
                .thenComparingLong(tenant -> of(tenant).suspendedSinceNs)
                .thenComparing(TenantReading::id))
        .ifPresent(
            tenant -> {
              of(tenant).resumingNs = nowNs;
              actions.add(
                  new ReclaimAction.Resume(
                      tenant.id(),
                      size(freeBytes)
                          + " are free, and the high watermark "
                          + size(settings.highBytes())
                          + " has been for "
                          + millis(nowNs - highSinceNs)));
            });
  }

  /**
   * Whether the high watermark stays free once the tenant is back. A tenant that is too large for
   * that may come back to an otherwise empty GPU.
   */
  private boolean hasRoom(TenantReading tenant) {
    long rest = Math.max(0, settings.usableBytes() - tenant.memoryBytes());
    return freeBytes - tenant.memoryBytes() >= Math.min(settings.highBytes(), rest);
  }

  // ---- reasons

  private long missingBytes() {
    return Math.max(1, settings.highBytes() - freeBytes);
  }

  private String shortage() {
    return "free memory "
        + size(freeBytes)
        + (foretold ? " will soon be" : " is")
        + " below the low watermark "
        + size(settings.lowBytes());
  }

  private static String choice(TenantReading tenant, VictimProgress victim) {
    return "it is "
        + tenant.preemptionClass().name().toLowerCase(Locale.ROOT)
        + ", holds "
        + size(tenant.memoryBytes())
        + " and has the least work to lose ("
        + millis(tenant.workNs())
        + " of GPU time)"
        + (victim.askedNs == NOT ? "" : "; asking its owner did not help enough");
  }

  private static String size(long bytes) {
    return bytes >= 1 << 20
        ? MemorySize.ofMebibytes(bytes >> 20).toString()
        : MemorySize.ofBytes(Math.max(0, bytes)).toString();
  }

  private static String millis(long ns) {
    return ns / 1_000_000 + " ms";
  }
}
