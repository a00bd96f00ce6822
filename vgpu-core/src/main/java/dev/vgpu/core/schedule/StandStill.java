package dev.vgpu.core.schedule;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Detects that a GPU stands still although a tenant could use it, and tells the observer. This only
 * happens if an event was lost, or if this package has an error. Confined to the scheduler's owner.
 */
final class StandStill {
  /** How long no tenant may have the turn while one could have it. */
  static final long MOST_NS = 100_000_000;

  /**
   * How often gates are asked for what should have been reported. An answer counts if the next one
   * says the same and no report has come in between. A report that is on its way is not lost.
   */
  private static final long LOOK_NS = MOST_NS / 2;

  /**
   * A tenant's stalls within this time are one message: a program that reports nothing causes one
   * in each turn.
   */
  private static final long TOGETHER_NS = 10_000_000_000L;

  private final TurnObserver observer;
  private final List<Tenant> watched = new ArrayList<>();
  private long sinceNs = TurnStepper.NEVER;
  private long lookedNs = TurnStepper.NEVER;

  StandStill(TurnObserver observer) {
    this.observer = observer;
  }

  /**
   * Whether the GPU has stood still for too long.
   *
   * @param next the tenant that could have the turn; null if there is none, if a gate is open, or
   *     if work is ending
   * @param gates has the time
   */
  boolean isTooLong(@Nullable Tenant next, ActiveGates gates) {
    if (next == null) {
      sinceNs = TurnStepper.NEVER;
      return false;
    }
    if (sinceNs == TurnStepper.NEVER) {
      sinceNs = gates.nowNs();
    }
    if (gates.nowNs() - sinceNs < MOST_NS) {
      gates.wakeAt(sinceNs + MOST_NS);
      return false;
    }
    sinceNs = TurnStepper.NEVER;
    return true;
  }

  /** Tells the observer that the GPU stood still, and the scheduler's state. */
  void tell(Tenant next, SchedulerState state, ActiveGates gates) {
    tell(next, "no tenant had the turn although it has work: " + state, gates);
  }

  private void tell(Tenant tenant, String what, ActiveGates gates) {
    long nowNs = gates.nowNs();
    if (tenant.stallToldNs != TurnStepper.NEVER && nowNs - tenant.stallToldNs < TOGETHER_NS) {
      tenant.stallsUntold++;
      return;
    }
    String others = tenant.stallsUntold == 0 ? "" : "; earlier stalls: " + tenant.stallsUntold;
    tenant.stallToldNs = nowNs;
    tenant.stallsUntold = 0;
    observer.stoodStill(tenant, what + others);
  }

  // ---- the end of work that nobody reports

  /** Records that a gate was shut and its work is awaited. */
  void shut(Tenant tenant, ActiveGates gates) {
    tenant.askAgainNs = gates.nowNs() + LOOK_NS;
    tenant.endSeen = false;
    awaited(tenant, gates);
  }

  /** Asks a gate again if its work is awaited for long: for processes, the report may be lost. */
  void awaited(Tenant tenant, ActiveGates gates) {
    if (tenant.drained || tenant.gate.leastTurnNs() == 0) {
      return;
    }
    if (gates.nowNs() >= tenant.askAgainNs) {
      boolean ended = tenant.gate.shut();
      tenant.drained = ended && tenant.endSeen;
      tenant.endSeen = ended;
      tenant.askAgainNs = gates.nowNs() + LOOK_NS;
      if (tenant.drained) {
        tell(tenant, "the end of its work was not reported", gates);
        return;
      }
    }
    gates.wakeAt(tenant.askAgainNs);
  }

  // ---- the beginning of work that nobody reports

  /** Records that a tenant may have work from now on. A gang asks for its turns itself. */
  void watch(Tenant tenant) {
    tenant.unheardNs = TurnStepper.NEVER;
    if (!tenant.watched && !tenant.gate.spansGpus()) {
      tenant.watched = true;
      watched.add(tenant);
    }
  }

  /** Records that a tenant has left. */
  void forget(Tenant tenant) {
    if (tenant.watched) {
      tenant.watched = false;
      boolean ignored = watched.remove(tenant);
    }
  }

  /**
   * Call this while no gate is open, no work is ending and nobody may run. Only processes are
   * asked: a call joins the line itself.
   *
   * @return a tenant that has had work without reporting it; null if there is none
   */
  @Nullable Tenant unheard(ActiveGates gates) {
    long nowNs = gates.nowNs();
    if (lookedNs != TurnStepper.NEVER && nowNs - lookedNs < LOOK_NS) {
      gates.wakeAt(lookedNs + LOOK_NS);
      return null;
    }
    boolean isAny = false;
    for (int i = 0; i < watched.size(); i++) {
      Tenant tenant = watched.get(i);
      if (tenant.gate.leastTurnNs() == 0) {
        continue;
      }
      isAny = true;
      if (tenant.isRunnable() || !tenant.gate.hasWork()) {
        tenant.unheardNs = TurnStepper.NEVER;
      } else if (tenant.unheardNs == TurnStepper.NEVER || nowNs - tenant.unheardNs > MOST_NS) {
        tenant.unheardNs = nowNs;
      } else {
        tell(tenant, "its work was not reported", gates);
        return tenant;
      }
    }
    lookedNs = isAny ? nowNs : TurnStepper.NEVER;
    if (isAny) {
      gates.wakeAt(nowNs + LOOK_NS);
    }
    return null;
  }
}
