package dev.vgpu.simulation;

/**
 * What a tenant's programs do: kernels (or calls) in sequence. A state machine that its gate
 * drives. Not thread-safe.
 */
public interface Workload {
  /** The time of an event that never happens. */
  long NEVER = Long.MAX_VALUE;

  /** {@return when more work arrives by itself; {@link #NEVER} if none does} */
  default long nextArrivalNs() {
    return NEVER;
  }

  /**
   * Accepts the work that arrives now.
   *
   * @param nowNs the present, not before {@link #nextArrivalNs}
   * @return how long the GPU will work for it; 0 if the supply is endless
   */
  default long arrive(long nowNs) {
    return 0;
  }

  /** {@return whether there is a kernel that need not wait for one that was taken before} */
  boolean hasKernel();

  /** {@return the length of the next kernel, which this removes; above 0} */
  long takeKernel();

  /**
   * Called when a kernel has ended: of those taken and not ended, the one taken first.
   *
   * @param nowNs the present
   * @return how long the host needs before it has the next kernel; 0 if it did not wait for this
   *     one
   */
  long kernelEnded(long nowNs);

  /**
   * Called when the only kernel that was taken and has not ended was cancelled: it must run again.
   *
   * @param kernelNs its length
   */
  void cancelled(long kernelNs);
}
