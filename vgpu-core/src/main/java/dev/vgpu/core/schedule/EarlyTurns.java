package dev.vgpu.core.schedule;

/**
 * The early turns of a level that are not settled yet: the latest one, and an earlier one whose
 * later tenant had more to report when the next turn began. Confined to the scheduler's owner.
 */
final class EarlyTurns {
  private EarlyTurn latest = new EarlyTurn();
  private EarlyTurn untold = new EarlyTurn();

  /** Records that a gate was opened while the one before it drains. */
  void begin(Tenant before, Tenant after, long nowNs) {
    if (latest.isUntold()) {
      EarlyTurn free = untold;
      untold = latest;
      latest = free;
    }
    latest.begin(before, after, nowNs);
  }

  /** Whether this tenant drains while the next one's turn has begun. */
  boolean isEarlier(Tenant tenant) {
    return latest.isEarlier(tenant);
  }

  /** Records that a tenant reported more use. Call this before the use is booked. */
  void told(Tenant tenant, double usedNs) {
    untold.told(tenant, usedNs);
    latest.told(tenant, usedNs);
  }

  /** Records that a tenant has drained. */
  void ended(Tenant tenant, long nowNs) {
    untold.ended(tenant, nowNs);
    latest.ended(tenant, nowNs);
  }

  /** Forgets a tenant that has left. */
  void forget(Tenant tenant) {
    untold.forget(tenant);
    latest.forget(tenant);
  }

  /**
   * Gives back what was charged twice, as far as the amount is known.
   *
   * @return the amount, in nanoseconds
   */
  double settle(ShareLevel level) {
    return untold.settle(level) + latest.settle(level);
  }
}
