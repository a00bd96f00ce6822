package dev.vgpu.spi;

/**
 * What a backend knows of a lease's work besides its GPU time. A part of it may be told only a
 * while after the work ended. Immutable.
 *
 * @param launches how many kernels and graphs were launched; 0 if that is not known
 * @param launchBoundNs how much of the GPU time was launch-bound, in nanoseconds: the processes'
 *     host code was slower than their kernels, and gaps between kernels are included, in which
 *     other leases' work would fit; may fall when a process ends
 * @param stoppedNs for how long running work was stopped inside kernels, in nanoseconds, with the
 *     change back to it, which is not in the GPU time; may fall when a process ends
 * @param stops how often it was stopped so; may fall when a process ends
 * @param stoppedAtNs when it was last stopped so, on the clock of {@link System#nanoTime()}; 0 if
 *     not known
 */
public record GpuWork(
    long launches, long launchBoundNs, long stoppedNs, long stops, long stoppedAtNs) {
  /** Nothing is known. */
  public static final GpuWork UNKNOWN = new GpuWork(0, 0, 0, 0, 0);
}
