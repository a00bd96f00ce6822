package dev.vgpu.core.turn;

import dev.vgpu.GpuUsage;
import dev.vgpu.MemorySize;
import java.time.Duration;

/**
 * A {@link GpuUsage} read at one moment.
 *
 * @param gpuTimeNs GPU time, in nanoseconds
 * @param calls calls and attempts that have ended or run
 * @param preemptions attempts that were asked to end
 * @param running calls inside
 * @param waiting calls that wait
 * @param memoryBytes budgets and reservations
 */
public record UsageReading(
    long gpuTimeNs, long calls, long preemptions, int running, int waiting, long memoryBytes)
    implements GpuUsage {
  @Override
  public Duration gpuTime() {
    return Duration.ofNanos(gpuTimeNs);
  }

  @Override
  public MemorySize memoryReserved() {
    return MemorySize.ofBytes(memoryBytes);
  }

  @Override
  public MemorySize memoryUsed() {
    return MemorySize.ZERO;
  }

  @Override
  public int processes() {
    return 0;
  }

  @Override
  public long launches() {
    return 0;
  }

  @Override
  public long deniedAllocations() {
    return 0;
  }
}
