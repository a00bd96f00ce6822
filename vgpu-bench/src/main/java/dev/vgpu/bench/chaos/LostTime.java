package dev.vgpu.bench.chaos;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Time in which processes could not make progress, because the machine did not run them or nothing
 * served them. Kept as intervals, so that the loss within a wait can be computed. Confined to one
 * thread.
 */
final class LostTime {
  private static final long KEPT_NS = 120_000_000_000L;

  private record Interval(long endNs, double ms) {}

  private final Deque<Interval> intervals = new ArrayDeque<>();

  /**
   * Adds an interval, later than all before.
   *
   * @param endNs its end
   * @param ms the time lost in it
   */
  void add(long endNs, double ms) {
    intervals.addLast(new Interval(endNs, ms));
    while (endNs - intervals.getFirst().endNs() > KEPT_NS) {
      intervals.removeFirst();
    }
  }

  /** {@return the time lost since a moment, in milliseconds} */
  double sinceMs(long sinceNs) {
    return backMs(sinceNs, 1, false);
  }

  /**
   * How much longer a wait may take because of lost time. A tenant that ran unscheduled meanwhile,
   * or was not stopped in time, pays that time back out of its share. Therefore lost time counts
   * several times, and an interval counts for as long afterwards as paying it back takes.
   *
   * @param sinceNs when the wait began, at the earliest
   * @param times how many milliseconds it takes to pay one millisecond back
   * @return milliseconds
   */
  double backMs(long sinceNs, double times) {
    return backMs(sinceNs, times, true);
  }

  private double backMs(long sinceNs, double times, boolean lasting) {
    double sum = 0;
    for (Interval interval : intervals) {
      double lastsMs = lasting ? interval.ms() * times : 0;
      if (interval.endNs() + (long) (lastsMs * 1e6) - sinceNs > 0) {
        sum += interval.ms();
      }
    }
    return sum * times;
  }
}
