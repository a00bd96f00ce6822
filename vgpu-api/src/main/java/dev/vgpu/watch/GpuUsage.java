package dev.vgpu.watch;

import dev.vgpu.request.MemorySize;
import java.time.Duration;
import java.util.OptionalDouble;

/**
 * The use of a virtual GPU so far, read at one moment. Immutable. May gain methods.
 *
 * <p>GPU time is the time during which work really ran on the GPU. Overlapping calls of one virtual
 * GPU are counted once: two calls that run together for a second use one second.
 */
public interface GpuUsage {
  /** {@return the GPU time since the virtual GPU was acquired, including running calls} */
  Duration gpuTime();

  /**
   * {@return how long the copy engines worked for its processes' copies between host and device, or
   * between devices} Copies run beside the kernels of whichever tenant has the GPU, so this time is
   * not part of {@link #gpuTime()} and counts against no share. Overlapping copies of several
   * streams add up. Memsets, and copies within a device, run on the GPU's processors and are GPU
   * time. Zero if no backend measures it.
   */
  default Duration copyTime() {
    return Duration.ZERO;
  }

  /** {@return the calls started; each attempt of a preempted call counts} */
  long calls();

  /**
   * {@return how many attempts were asked to end for a more urgent tenant, plus how often its
   * processes lost their turn to one}
   */
  long preemptions();

  /** {@return the calls that are inside their turn now} */
  int running();

  /** {@return the calls that wait for a turn or for memory now} */
  int waiting();

  /** {@return the quota now taken by budgets of running calls and by reservations} */
  MemorySize memoryReserved();

  /** {@return the GPU memory that its processes hold now; 0 if no backend counts it} */
  MemorySize memoryUsed();

  /** {@return the processes that run under it now} */
  int processes();

  /** {@return the kernels and graphs that its processes launched} */
  long launches();

  /** {@return the allocations of its processes that exceeded the quota and were refused} */
  long deniedAllocations();

  /**
   * {@return how much longer its work takes beside other tenants than alone: recent GPU time per
   * launch, divided by the same while no other tenant used the GPU} An estimate: 1 if others do not
   * slow it down, 1.1 if its work takes a tenth longer. Empty until there are enough measurements
   * of both.
   */
  OptionalDouble slowdown();
}
