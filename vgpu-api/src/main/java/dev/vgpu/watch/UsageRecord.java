package dev.vgpu.watch;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * The metered use of one virtual GPU in a span of time. Immutable. May gain methods.
 *
 * <p>Records are kept in the run directory. They outlive processes and the virtual GPU itself. A
 * virtual GPU is metered once a second, and when it is closed. If a span begins more than some
 * hours ago, its beginning is exact to a minute.
 *
 * @see dev.vgpu.GpuPool#usageSince
 */
public interface UsageRecord {
  /** {@return the virtual GPU's {@link dev.vgpu.VirtualGpu#id()}} */
  String virtualGpu();

  /** {@return the {@link VirtualGpuRequest#name()} of its request} */
  String name();

  /** {@return the GPUs that it was cut from; one, unless it asked for more} */
  List<GpuId> gpus();

  /**
   * {@return when the span begins: when it was acquired, or the requested moment if that is later}
   */
  Instant from();

  /** {@return when it was last metered} */
  Instant to();

  /** {@return whether it is closed, so that its use is final} */
  boolean isClosed();

  /** {@return the GPU time in the span; a turn on two GPUs counts twice} */
  Duration gpuTime();

  /**
   * {@return how long the copy engines worked for its processes' copies between host and device in
   * the span} Copies run beside kernels, so this time is not part of {@link #gpuTime}. Zero in
   * records written before copy time was metered.
   */
  default Duration copyTime() {
    return Duration.ZERO;
  }

  /**
   * {@return the memory held, multiplied by the time for which it was held, in byte-seconds} Counts
   * the memory of its processes or the budgets of its calls, whichever is more.
   */
  double byteSeconds();

  /** {@return the calls that began in the span} */
  long calls();

  /** {@return the kernels and graphs that its processes launched in the span} */
  long launches();

  /** {@return how often it lost its turn to a more urgent tenant in the span} */
  long preemptions();

  /** {@return the allocations in the span that exceeded the quota and were refused} */
  long deniedAllocations();
}
