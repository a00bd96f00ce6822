package dev.vgpu.core.metering;

import dev.vgpu.watch.GpuUsage;

/**
 * Counts up to some moment. Immutable.
 *
 * @param gpuNs GPU time, in nanoseconds
 * @param byteSeconds memory held, in bytes, times seconds
 * @param calls calls that began
 * @param launches kernels and graphs launched
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

  /** The counters of a reading, which has no byte-seconds. */
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

  /** A turn on several GPUs uses its time on each of them. */
  Counters timesGpus(int count) {
    return new Counters(gpuNs * count, byteSeconds, calls, launches, preemptions, denied, copyNs);
  }

  Counters withByteSeconds(long value) {
    return new Counters(gpuNs, value, calls, launches, preemptions, denied, copyNs);
  }

  /**
   * The growth of each counter. A counter that has shrunk was restarted by a process that took the
   * seat over. Its value was then counted before, or it is not known to have been used.
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
