package dev.vgpu.core.schedule;

import org.jspecify.annotations.Nullable;

/**
 * Watches that a GPU does not stand still while somebody might use it, and tells its observer if it
 * did. That takes news that were lost, or an error in this package. Confined to the scheduler's
 * owner.
 */
final class StandStill {
  /** For how long nobody has the turn at most while somebody might have it. */
  static final long MOST_NS = 100_000_000;

  /** Work of processes that has not ended by then is looked at again; their backend is sooner. */
  private static final long ASK_AGAIN_NS = 300_000_000;

  private final ShareScheduler.Observer observer;
  private long sinceNs = ShareScheduler.NEVER;

  StandStill(ShareScheduler.Observer observer) {
    this.observer = observer;
  }

  /**
   * Looks whether the GPU has stood still for too long.
   *
   * @param next who might have the turn; null: nobody, or a gate is open, or its work is ending
   * @param gates the time
   */
  boolean isTooLong(@Nullable Tenant next, ActiveGates gates) {
    if (next == null) {
      sinceNs = ShareScheduler.NEVER;
      return false;
    }
    if (sinceNs == ShareScheduler.NEVER) {
      sinceNs = gates.nowNs();
    }
    if (gates.nowNs() - sinceNs < MOST_NS) {
      gates.wakeAt(sinceNs + MOST_NS);
      return false;
    }
    sinceNs = ShareScheduler.NEVER;
    return true;
  }

  /** Tells that it did, and how things are. */
  void tell(Tenant next, SchedulerState state) {
    observer.stoodStill("nobody had the turn, though " + next.id() + " has work: " + state);
  }

  /** A gate was shut, and its work is awaited. */
  void shut(Tenant tenant, ActiveGates gates) {
    tenant.askAgainNs = gates.nowNs() + ASK_AGAIN_NS;
    awaited(tenant, gates);
  }

  /** Asks a gate whose work is awaited for long: where processes work, that news may be lost. */
  void awaited(Tenant tenant, ActiveGates gates) {
    if (tenant.drained || tenant.gate.leastTurnNs() == 0) {
      return;
    }
    if (gates.nowNs() >= tenant.askAgainNs) {
      tenant.drained = tenant.gate.shut();
      tenant.askAgainNs = gates.nowNs() + ASK_AGAIN_NS;
      if (tenant.drained) {
        observer.stoodStill("nobody told that the work of " + tenant.id() + " had ended");
        return;
      }
    }
    gates.wakeAt(tenant.askAgainNs);
  }
}
