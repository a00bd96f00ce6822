package dev.vgpu.simulation;

/**
 * How a tenant's work is enforced, and what that costs: calls of a JVM, or processes under the
 * hook. Immutable.
 *
 * @param tellNs how long the tenant's reports take to reach the scheduler; 0 or more
 * @param wakeNs from the opening of the gate to work on the GPU, for work that waited; 0 or more
 * @param inFlightNs how much work may be queued on the GPU, besides the running kernel, while other
 *     tenants are there; 0 means none
 * @param inFlightAloneNs the same while no other tenant is there
 * @param inFlightYieldingNs the same if a more urgent tenant's work may stop it at any moment
 * @param leastTurnNs the shortest turn that is worth its hand-over; 0 means any
 * @param shortIdleNs pauses up to this length are not reported; 0 means that all are
 * @param lane whether its work stops by itself while a more urgent tenant is busy, and whether it
 *     announces itself if it is the urgent one
 * @param laneLingerNs how long an urgent tenant without work still counts as busy on the lane
 * @param mayOverlap whether it may be open beside others
 * @param tellsInLumps whether the use of a kernel is reported when it has ended, not while it runs
 * @param cancelTakesNs how long work that was asked to end still runs; negative if it does not end
 */
public record GateModel(
    long tellNs,
    long wakeNs,
    long inFlightNs,
    long inFlightAloneNs,
    long inFlightYieldingNs,
    long leastTurnNs,
    long shortIdleNs,
    boolean lane,
    long laneLingerNs,
    boolean mayOverlap,
    boolean tellsInLumps,
    long cancelTakesNs) {
  private static final long US = 1_000;

  /**
   * {@return calls without any cost of enforcement}
   *
   * @param cancelTakesNs how long a cancelled call still runs; negative if it cannot be cancelled
   */
  public static GateModel ideal(long cancelTakesNs) {
    return new GateModel(0, 0, 0, 0, 0, 0, 0, false, 0, false, false, cancelTakesNs);
  }

  /**
   * {@return calls in the scheduler's own JVM: a thread is woken for each turn}
   *
   * @param cancelTakesNs how long a cancelled call still runs; negative if it cannot be cancelled
   */
  public static GateModel calls(long cancelTakesNs) {
    return new GateModel(0, 20 * US, 0, 0, 0, 0, 0, false, 0, false, false, cancelTakesNs);
  }

  /** {@return processes under the hook: they launch ahead, and report by messages} */
  public static GateModel processes() {
    return new GateModel(
        100 * US,
        100 * US,
        2_000 * US,
        10_000 * US,
        400 * US,
        10_000 * US,
        100 * US,
        true,
        150 * US,
        true,
        true,
        -1);
  }

  /** {@return whether its work is that of the scheduler's own JVM, all of which has one context} */
  public boolean isInSeat() {
    return tellNs == 0;
  }

  /** {@return the same model without a lane, and never open beside others} */
  public GateModel strict() {
    return with(false, false, tellsInLumps, cancelTakesNs);
  }

  /** {@return the same model, but use is reported when a kernel has ended} */
  public GateModel inLumps() {
    return with(lane, mayOverlap, true, cancelTakesNs);
  }

  /**
   * {@return the same model, but work that is asked to end does end}
   *
   * @param takesNs how long that takes; negative if it does not end
   */
  public GateModel cancelling(long takesNs) {
    return with(lane, mayOverlap, tellsInLumps, takesNs);
  }

  private GateModel with(boolean itsLane, boolean overlaps, boolean lumps, long takesNs) {
    return new GateModel(
        tellNs,
        wakeNs,
        inFlightNs,
        inFlightAloneNs,
        inFlightYieldingNs,
        leastTurnNs,
        shortIdleNs,
        itsLane,
        laneLingerNs,
        overlaps,
        lumps,
        takesNs);
  }
}
