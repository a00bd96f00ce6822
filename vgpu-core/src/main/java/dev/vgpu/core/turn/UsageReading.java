package dev.vgpu.core.turn;

import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.watch.GpuUsage;
import java.time.Duration;
import java.util.OptionalDouble;

/**
 * A {@link GpuUsage} read at one moment.
 *
 * @param gpuTimeNs GPU time, in nanoseconds
 * @param calls calls and attempts that have ended or are running
 * @param preemptions attempts that were asked to end, and turns that processes lost
 * @param running calls inside
 * @param waiting calls that wait
 * @param memoryBytes budgets and reservations, in bytes
 * @param usedBytes the memory that processes hold, in bytes
 * @param processes the number of processes
 * @param launches kernels and graphs launched
 * @param deniedAllocations allocations that exceeded the quota and were refused
 * @param copyTimeNs time of copies on the copy engines, in nanoseconds
 * @param slowdown how much longer work takes beside others than alone
 */
public record UsageReading(
    long gpuTimeNs,
    long calls,
    long preemptions,
    int running,
    int waiting,
    long memoryBytes,
    long usedBytes,
    int processes,
    long launches,
    long deniedAllocations,
    long copyTimeNs,
    OptionalDouble slowdown)
    implements GpuUsage {
  /** No use. */
  public static final UsageReading NONE = ofCalls(0, 0, 0, 0, 0, 0);

  /** Creates a reading without copy time and slowdown. */
  public UsageReading(
      long gpuTimeNs,
      long calls,
      long preemptions,
      int running,
      int waiting,
      long memoryBytes,
      long usedBytes,
      int processes,
      long launches,
      long deniedAllocations) {
    this(
        gpuTimeNs,
        calls,
        preemptions,
        running,
        waiting,
        memoryBytes,
        usedBytes,
        processes,
        launches,
        deniedAllocations,
        0,
        OptionalDouble.empty());
  }

  static UsageReading ofCalls(
      long gpuTimeNs, long calls, long preemptions, int running, int waiting, long memoryBytes) {
    return new UsageReading(
        gpuTimeNs, calls, preemptions, running, waiting, memoryBytes, 0, 0, 0, 0);
  }

  /** Adds the use of a lease's processes to that of its calls. */
  UsageReading with(EnforcedLease lease, long callsFinalNs, long turnsLost, long processesNs) {
    return new UsageReading(
        (callsFinalNs >= 0 ? callsFinalNs : gpuTimeNs) + processesNs,
        calls,
        preemptions + turnsLost,
        running,
        waiting + lease.waiting(),
        memoryBytes,
        lease.memoryUsed().bytes(),
        lease.processes().size(),
        lease.launches(),
        lease.deniedAllocations(),
        lease.copyTimeNs(),
        OptionalDouble.empty());
  }

  /**
   * {@return the same reading with a slowdown}
   *
   * @param estimate how much longer work takes beside others than alone
   */
  public UsageReading with(OptionalDouble estimate) {
    return new UsageReading(
        gpuTimeNs,
        calls,
        preemptions,
        running,
        waiting,
        memoryBytes,
        usedBytes,
        processes,
        launches,
        deniedAllocations,
        copyTimeNs,
        estimate);
  }

  @Override
  public Duration gpuTime() {
    return Duration.ofNanos(gpuTimeNs);
  }

  @Override
  public Duration copyTime() {
    return Duration.ofNanos(copyTimeNs);
  }

  @Override
  public MemorySize memoryReserved() {
    return MemorySize.ofBytes(memoryBytes);
  }

  @Override
  public MemorySize memoryUsed() {
    return MemorySize.ofBytes(usedBytes);
  }
}
