package dev.vgpu;

/** The order of yielding, declared from the most urgent to the least. */
public enum PreemptionClass {
  /**
   * Preempts {@link #OFFLINE} at once, and of all that are entitled to run gets the next turn. For
   * requests with a waiting user.
   */
  ONLINE,

  /** Preempts {@link #OFFLINE}, and is never preempted. For work that is soon wanted. */
  NEARLINE,

  /**
   * Gets the time that the others may not use, and at least the pool's offline floor. For batch
   * work that may be interrupted.
   */
  OFFLINE;

  /**
   * {@return whether this class goes before the other one}
   *
   * @param other the class compared with
   */
  public boolean isMoreUrgentThan(PreemptionClass other) {
    return compareTo(other) < 0;
  }
}
