package dev.vgpu.core.reclaim;

/**
 * An action that a {@link ReclaimPlanner} demands. The planner learns the outcome from the next
 * readings, or is told.
 */
public sealed interface ReclaimAction {
  /**
   * Ask the owner to free memory. Call {@link ReclaimPlanner#answered} when it has answered.
   *
   * @param id the virtual GPU
   * @param wantedBytes how much is missing on the GPU
   * @param reason why
   */
  record Ask(String id, long wantedBytes, String reason) implements ReclaimAction {}

  /**
   * Suspend its processes. Call {@link ReclaimPlanner#suspendFailed} if that fails.
   *
   * @param id the virtual GPU
   * @param timeoutNs the longest that it may take
   * @param wantedBytes how much of its memory is needed; more may be moved
   * @param reason why
   */
  record Suspend(String id, long timeoutNs, long wantedBytes, String reason)
      implements ReclaimAction {}

  /**
   * Resume its processes. Call {@link ReclaimPlanner#resumeFailed} if that fails.
   *
   * @param id the virtual GPU
   * @param reason why
   */
  record Resume(String id, String reason) implements ReclaimAction {}

  /**
   * End its processes.
   *
   * @param id the virtual GPU
   * @param kill true to kill them, false to ask them to terminate
   * @param reason why
   */
  record End(String id, boolean kill, String reason) implements ReclaimAction {}

  /**
   * Let no tenant with this name start until {@link LetBack}.
   *
   * @param name the name in requests
   * @param reason why
   */
  record HoldBack(String name, String reason) implements ReclaimAction {}

  /**
   * Tenants with this name may start again.
   *
   * @param name the name in requests
   */
  record LetBack(String name) implements ReclaimAction {}
}
