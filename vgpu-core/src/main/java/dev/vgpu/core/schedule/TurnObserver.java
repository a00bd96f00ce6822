package dev.vgpu.core.schedule;

/** Receives a scheduler's preemptions and standstills. Called by the scheduler's owner. */
@FunctionalInterface
public interface TurnObserver {
  /**
   * A tenant lost its turn to a more urgent one.
   *
   * @param victim the tenant that lost its turn
   * @param by the more urgent tenant
   * @param askedToEnd how many running calls were asked to end
   */
  void preempted(Tenant victim, Tenant by, int askedToEnd);

  /**
   * The GPU stood still although a tenant could have used it, and the scheduler has corrected that.
   * This only happens if an event was lost, or if the scheduler has an error.
   *
   * @param tenant the tenant that could have used it, or whose work was awaited
   * @param what the finding, in words
   */
  default void stoodStill(Tenant tenant, String what) {}
}
