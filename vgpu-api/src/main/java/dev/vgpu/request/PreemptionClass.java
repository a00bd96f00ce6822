package dev.vgpu.request;

/** How urgent a tenant is. Declared from most to least urgent. */
public enum PreemptionClass {
  /**
   * Preempts {@link #OFFLINE} at once. Among the tenants entitled to run, gets the next turn. For
   * requests with a waiting user.
   */
  ONLINE,

  /** Preempts {@link #OFFLINE}, and is never preempted. For work whose result is needed soon. */
  NEARLINE,

  /**
   * Gets the time that the other classes may not use, and at least the GPU's offline floor. For
   * batch work that may be interrupted.
   */
  OFFLINE;

  /**
   * {@return whether this class is more urgent than the other one}
   *
   * @param other the class to compare with
   */
  public boolean isMoreUrgentThan(PreemptionClass other) {
    return compareTo(other) < 0;
  }
}
