package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * Detects that a GPU stands still although a tenant could use it, and tells the observer. This only
 * happens if an event was lost, or if this package has an error. Confined to the scheduler's owner.
 */
final class StandStill {
  /** How long no tenant may have the turn while one could have it. */
  static final long MOST_NS = 100_000_000;

  /**
   * After this time, running work that has not ended is checked again. The backend usually reports
   * earlier.
   */
  private static final long ASK_AGAIN_NS = 300_000_000;

  private final TurnObserver observer;
  private long sinceNs = TurnStepper.NEVER;

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
  void tell(Tenant next, SchedulerState state) {
    observer.stoodStill("no tenant had the turn although " + next.id() + " has work: " + state);
  }

  /** Records that a gate was shut and its work is awaited. */
  void shut(Tenant tenant, ActiveGates gates) {
    tenant.askAgainNs = gates.nowNs() + ASK_AGAIN_NS;
    awaited(tenant, gates);
  }

  /** Asks a gate again if its work is awaited for long: for processes, the report may be lost. */
  void awaited(Tenant tenant, ActiveGates gates) {
    if (tenant.drained || tenant.gate.leastTurnNs() == 0) {
      return;
    }
    if (gates.nowNs() >= tenant.askAgainNs) {
      tenant.drained = tenant.gate.shut();
      tenant.askAgainNs = gates.nowNs() + ASK_AGAIN_NS;
      if (tenant.drained) {
        observer.stoodStill("the end of " + tenant.id() + "'s work was not reported");
        return;
      }
    }
    gates.wakeAt(tenant.askAgainNs);
  }
}
