package dev.vgpu.core.metering;

import dev.vgpu.GpuUsage;

/**
 * What was counted, up to some moment. Immutable.
 *
 * @param gpuNs GPU time, in nanoseconds
 * @param byteSeconds memory held, times seconds
 * @param calls calls that began
 * @param launches kernels and graphs
 * @param preemptions turns lost
 * @param denied allocations refused
 * @param copyNs time of copies on the copy engines, in nanoseconds
 */
record Counters(
    long gpuNs,
    long byteSeconds,
    long calls,
    long launches,
    long preemptions,
    long denied,
    long copyNs) {
  static final Counters ZERO = new Counters(0, 0, 0, 0, 0, 0, 0);

  /** What a virtual GPU says of itself; it does not count bytes over time. */
  static Counters of(GpuUsage usage) {
    return new Counters(
        usage.gpuTime().toNanos(),
        0,
        usage.calls(),
        usage.launches(),
        usage.preemptions(),
        usage.deniedAllocations(),
        usage.copyTime().toNanos());
  }

  Counters plus(Counters more) {
    return new Counters(
        gpuNs + more.gpuNs,
        byteSeconds + more.byteSeconds,
        calls + more.calls,
        launches + more.launches,
        preemptions + more.preemptions,
        denied + more.denied,
        copyNs + more.copyNs);
  }

  /** Where one turn is a turn on several GPUs, its time is used on each of them. */
  Counters timesGpus(int count) {
    return new Counters(gpuNs * count, byteSeconds, calls, launches, preemptions, denied, copyNs);
  }

  Counters withByteSeconds(long value) {
    return new Counters(gpuNs, value, calls, launches, preemptions, denied, copyNs);
  }

  /**
   * How much each has grown. One that has become less was begun anew, by a process that took the
   * seat over: what it shows until then was counted already, or is not known to have been used.
   */
  Counters since(Counters before) {
    return new Counters(
        grown(gpuNs, before.gpuNs),
        grown(byteSeconds, before.byteSeconds),
        grown(calls, before.calls),
        grown(launches, before.launches),
        grown(preemptions, before.preemptions),
        grown(denied, before.denied),
        grown(copyNs, before.copyNs));
  }

  private static long grown(long now, long before) {
    return Math.max(0, now - before);
  }
}
