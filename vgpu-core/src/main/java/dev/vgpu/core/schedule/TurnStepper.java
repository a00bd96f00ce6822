package dev.vgpu.core.schedule;

/**
 * What a GPU's owner steps when something has happened or a deadline comes: the scheduler, or in a
 * process that does not hold the seat, what stands for it. Confined to its owner.
 */
public interface TurnStepper {
  /**
   * Takes all decisions that are due.
   *
   * @param nowNs the present
   * @return how many gates were opened or shut
   */
  int doWork(long nowNs);

  /** {@return when {@link #doWork} must be called at the latest if nothing happens before} */
  long nextWakeNs();
}
