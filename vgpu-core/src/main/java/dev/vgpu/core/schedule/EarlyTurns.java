package dev.vgpu.core.schedule;

/**
 * The turns of a level that began early and are not settled yet: the latest one, and one before it
 * whose work had told nothing when the next turn began. Confined to the scheduler's owner.
 */
final class EarlyTurns {
  private EarlyTurn latest = new EarlyTurn();
  private EarlyTurn untold = new EarlyTurn();

  /** A gate was opened while the one before it drains. */
  void begin(Tenant before, Tenant after, long nowNs) {
    if (latest.isUntold()) {
      EarlyTurn free = untold;
      untold = latest;
      latest = free;
    }
    latest.begin(before, after, nowNs);
  }

  /** Whether this is who drains while the next one's turn has begun. */
  boolean isEarlier(Tenant tenant) {
    return latest.isEarlier(tenant);
  }

  /** A tenant has told that it used more, before the account of it is taken. */
  void told(Tenant tenant, double usedNs) {
    untold.told(tenant, usedNs);
    latest.told(tenant, usedNs);
  }

  /** A tenant has drained. */
  void ended(Tenant tenant, long nowNs) {
    latest.ended(tenant, nowNs);
  }

  /** A tenant has gone. */
  void forget(Tenant tenant) {
    untold.forget(tenant);
    latest.forget(tenant);
  }

  /**
   * Gives back what was charged twice, as far as that is known.
   *
   * @return how much that is, in nanoseconds
   */
  double settle(ShareLevel level) {
    return untold.settle(level) + latest.settle(level);
  }
}
