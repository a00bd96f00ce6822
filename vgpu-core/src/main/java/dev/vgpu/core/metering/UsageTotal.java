package dev.vgpu.core.metering;

import dev.vgpu.GpuId;
import dev.vgpu.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * What one virtual GPU used in a span of time. Immutable.
 *
 * @param virtualGpu its name
 * @param name the name that it was asked for under
 * @param gpus the GPUs that it is cut from
 * @param from when the span begins
 * @param to when it was metered last
 * @param isClosed whether nothing will be added
 * @param gpuTime GPU time
 * @param byteSeconds memory times seconds
 * @param calls calls that began
 * @param launches kernels and graphs
 * @param preemptions turns lost
 * @param deniedAllocations refused
 * @param copyTime of copies on the copy engines
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
