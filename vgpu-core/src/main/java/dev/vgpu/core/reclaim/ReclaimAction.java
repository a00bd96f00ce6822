package dev.vgpu.core.reclaim;

/** What a {@link ReclaimPlanner} wants done. The outcome is seen in the next readings, or told. */
public sealed interface ReclaimAction {
  /**
   * Ask the owner to free memory; {@link ReclaimPlanner#answered} when it has answered.
   *
   * @param id the virtual GPU
   * @param wantedBytes how much is missing on the GPU
   * @param reason why
   */
  record Ask(String id, long wantedBytes, String reason) implements ReclaimAction {}

  /**
   * Suspend its processes; {@link ReclaimPlanner#suspendFailed} if that cannot be done.
   *
   * @param id the virtual GPU
   * @param timeoutNs how long it may take
   * @param wantedBytes how much of its memory is needed; more may go
   * @param reason why
   */
  record Suspend(String id, long timeoutNs, long wantedBytes, String reason)
      implements ReclaimAction {}

  /**
   * Let its processes go on; {@link ReclaimPlanner#resumeFailed} if that cannot be done.
   *
   * @param id the virtual GPU
   * @param reason why
   */
  record Resume(String id, String reason) implements ReclaimAction {}

  /**
   * End its processes.
   *
   * @param id the virtual GPU
   * @param kill whether they are killed, or told to end
   * @param reason why
   */
  record End(String id, boolean kill, String reason) implements ReclaimAction {}

  /**
   * Let no tenant of this name start until {@link LetBack}.
   *
   * @param name the name in requests
   * @param reason why
   */
  record HoldBack(String name, String reason) implements ReclaimAction {}

  /**
   * Tenants of this name may start again.
   *
   * @param name the name in requests
   */
  record LetBack(String name) implements ReclaimAction {}
}
