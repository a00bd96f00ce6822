package dev.vgpu;

import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * The metered use of one virtual GPU in a span of time. Immutable. May gain methods.
 *
 * <p>Kept in the run directory, over the end of processes and of the virtual GPU itself. Metered
 * once a second and when a virtual GPU is closed; where a span begins longer ago than some hours,
 * the beginning is exact to a minute.
 *
 * @see GpuPool#usageSince
 */
public interface UsageRecord {
  /** {@return the virtual GPU's {@link VirtualGpu#id()}} */
  String virtualGpu();

  /** {@return the {@link VirtualGpuRequest#name()} that it was asked for under} */
  String name();

  /** {@return the GPUs that it was cut from; one, unless it asked for more} */
  List<GpuId> gpus();

  /** {@return when the span begins: when it was acquired, or the asked moment if that is later} */
  Instant from();

  /** {@return when it was metered last} */
  Instant to();

  /** {@return whether it is closed, so that nothing will be added} */
  boolean isClosed();

  /** {@return the GPU time in the span; a turn on two GPUs counts twice} */
  Duration gpuTime();

  /**
   * {@return the time that copies of its processes between host and device took on the copy engines
   * in the span} They run beside kernels, so this is not in {@link #gpuTime}. Zero in what was
   * metered before this was.
   */
  default Duration copyTime() {
    return Duration.ZERO;
  }

  /**
   * {@return the memory that it held, multiplied by the time for which it held it, in
   * byte-seconds}: the memory of its processes or the budgets of its calls, whichever was more
   */
  double byteSeconds();

  /** {@return the calls that began in the span} */
  long calls();

  /** {@return the kernels and graphs that its processes launched in the span} */
  long launches();

  /** {@return how often it lost its turn to a more urgent tenant in the span} */
  long preemptions();

  /** {@return the allocations that were refused for the quota in the span} */
  long deniedAllocations();
}
