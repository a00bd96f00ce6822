package dev.vgpu.core.metering;

import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * The use of one virtual GPU in a span of time. Immutable.
 *
 * @param virtualGpu its id
 * @param name the name in its request
 * @param gpus the GPUs that it is cut from
 * @param from when the span begins
 * @param to when it was last metered
 * @param isClosed whether its use is final
 * @param gpuTime GPU time
 * @param byteSeconds memory held, in bytes, times seconds
 * @param calls calls that began
 * @param launches kernels and graphs launched
 * @param preemptions turns lost
 * @param deniedAllocations allocations refused
 * @param copyTime time of copies on the copy engines
 */
public record UsageTotal(
    String virtualGpu,
    String name,
    List<GpuId> gpus,
    Instant from,
    Instant to,
    boolean isClosed,
    Duration gpuTime,
    double byteSeconds,
    long calls,
    long launches,
    long preemptions,
    long deniedAllocations,
    Duration copyTime)
    implements UsageRecord {
  /** Copies the list. */
  public UsageTotal {
    gpus = List.copyOf(gpus);
  }
}
