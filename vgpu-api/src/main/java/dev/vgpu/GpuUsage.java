package dev.vgpu;

import java.time.Duration;
import java.util.OptionalDouble;

/**
 * The use of a virtual GPU so far, read at one moment. Immutable. May gain methods.
 *
 * <p>GPU time is the time during which work really ran on the GPU. Calls of one virtual GPU that
 * overlap are counted once: two that run together for a second make one second.
 */
public interface GpuUsage {
  /** {@return the GPU time since the virtual GPU was acquired, the running call included} */
  Duration gpuTime();

  /**
   * {@return the time that copies between host and device, or between devices, of its processes
   * took on the copy engines} They run beside the kernels of whoever has the GPU, so this is not in
   * {@link #gpuTime()} and counts against no share. Copies of several streams that overlap add up.
   * Memsets, and copies within a device, run on the GPU's processors: those are GPU time. Zero
   * where no backend counts it.
   */
  default Duration copyTime() {
    return Duration.ZERO;
  }

  /** {@return the calls started, each attempt of a preempted call counted once} */
  long calls();

  /** {@return the attempts that were cancelled for a more urgent tenant} */
  long preemptions();

  /** {@return the calls that are inside their turn now} */
  int running();

  /** {@return the calls that wait for a turn or for memory now} */
  int waiting();

  /** {@return the memory that budgets of running calls and reservations take of the quota now} */
  MemorySize memoryReserved();

  /** {@return the GPU memory that its processes hold now; 0 where no backend counts it} */
  MemorySize memoryUsed();

  /** {@return the processes that run under it now} */
  int processes();

  /** {@return the kernels and graphs that its processes launched} */
  long launches();

  /** {@return the allocations of its processes that were refused for the quota} */
  long deniedAllocations();

  /**
   * {@return how much longer its work takes on the GPU beside others than alone: GPU time per
   * launch lately, divided by the same while nobody else used the GPU} An estimate: 1 where others
   * do not slow it, 1.1 where its work takes a tenth longer. Empty until enough was seen of both.
   */
  OptionalDouble slowdown();
}
