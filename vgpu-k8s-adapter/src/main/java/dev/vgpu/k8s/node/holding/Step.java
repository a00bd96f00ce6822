package dev.vgpu.k8s.node.holding;

/** The steps of taking and giving back. Nothing is lost if this process dies between two. */
public enum Step {
  /** A new file is complete under a temporary name, but not yet in place. */
  FILE_WRITTEN,
  /** The intention to take is on disk. */
  INTENT_KEPT,
  /** A virtual GPU was acquired. */
  ACQUIRED,
  /** The CDI file is in place. */
  DESCRIBED,
  /** The result of taking is on disk. */
  TAKEN_KEPT,
  /** The intention to give back is on disk. */
  RETURN_KEPT,
  /** A virtual GPU was closed. */
  CLOSED,
  /** The CDI file is gone. */
  UNDESCRIBED,
  /** The record is removed. */
  FORGOTTEN;

  /** Is notified of each step before the next one begins. */
  @FunctionalInterface
  public interface Listener {
    /**
     * Called when a step is done.
     *
     * @param step the step
     */
    void reached(Step step);
  }
}
