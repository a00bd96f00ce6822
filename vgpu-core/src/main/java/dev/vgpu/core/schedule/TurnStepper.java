package dev.vgpu.core.schedule;

/**
 * What a GPU's owner steps after an event or at a deadline: the scheduler, or its stand-in in a
 * process that does not hold the seat. Confined to its owner.
 */
public interface TurnStepper {
  /** The value of {@link #nextWakeNs()} if only an event can change anything. */
  long NEVER = Long.MAX_VALUE;

  /**
   * Takes all decisions that are due.
   *
   * @param nowNs the present
   * @return how many gates were opened or shut
   */
  int doWork(long nowNs);

  /** {@return when to call {@link #doWork} at the latest if nothing happens before} */
  long nextWakeNs();
}
