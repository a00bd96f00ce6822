package dev.vgpu.k8s.node.holding;

/** The moments between which a death of this process must lose nothing. */
public enum Step {
  /** A new file is complete under another name, and not yet in its place. */
  FILE_WRITTEN,
  /** The intention to take is on disk. */
  INTENT_KEPT,
  /** A virtual GPU was acquired. */
  ACQUIRED,
  /** The CDI file is in its place. */
  DESCRIBED,
  /** What was taken is on disk. */
  TAKEN_KEPT,
  /** The intention to give back is on disk. */
  RETURN_KEPT,
  /** A virtual GPU was closed. */
  CLOSED,
  /** The CDI file is gone. */
  UNDESCRIBED,
  /** Nothing is on disk any more. */
  FORGOTTEN;

  /** Is told of each step, before the next one begins. */
  @FunctionalInterface
  public interface Listener {
    /**
     * A step was done.
     *
     * @param step which one
     */
    void reached(Step step);
  }
}
