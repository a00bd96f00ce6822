package dev.vgpu.core.simulate;

/**
 * What a tenant's programs do: kernels (or calls), one after the other. A state machine that its
 * gate drives. Not thread-safe.
 */
public interface Workload {
  /** There is no such time. */
  long NEVER = Long.MAX_VALUE;

  /** {@return when more work arrives by itself; {@link #NEVER} if none does} */
  default long nextArrivalNs() {
    return NEVER;
  }

  /**
   * Takes in what arrives now.
   *
   * @param nowNs the present, not before {@link #nextArrivalNs}
   * @return how long the GPU will work for it; 0 where there is always more
   */
  default long arrive(long nowNs) {
    return 0;
  }

  /** {@return whether there is a kernel that need not wait for one that was taken before} */
  boolean hasKernel();

  /** {@return the length of the next kernel, which is taken; above 0} */
  long takeKernel();

  /**
   * The kernel that was taken first, of those that have not ended, has ended.
   *
   * @param nowNs the present
   * @return how long the host needs before it has the next one; 0 if it did not wait for this one
   */
  long kernelEnded(long nowNs);

  /**
   * The only kernel that was taken and has not ended was cancelled: it has to run again.
   *
   * @param kernelNs its length
   */
  void cancelled(long kernelNs);
}
