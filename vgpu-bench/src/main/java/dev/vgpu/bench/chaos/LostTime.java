package dev.vgpu.bench.chaos;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Time in which processes could not do what they would have done: the machine did not let them run,
 * or nobody served them. Kept by intervals, so that it can be told what lay within a wait. Confined
 * to one thread.
 */
final class LostTime {
  private static final long KEPT_NS = 120_000_000_000L;

  private record Interval(long endNs, double ms) {}

  private final Deque<Interval> intervals = new ArrayDeque<>();

  /**
   * Adds an interval, later than all before.
   *
   * @param endNs its end
   * @param ms what was lost in it
   */
  void add(long endNs, double ms) {
    intervals.addLast(new Interval(endNs, ms));
    while (endNs - intervals.getFirst().endNs() > KEPT_NS) {
      intervals.removeFirst();
    }
  }

  /** {@return what was lost since, in milliseconds} */
  double sinceMs(long sinceNs) {
    return backMs(sinceNs, 1, false);
  }

  /**
   * By how much a wait that began then may be longer. Who went by its own pace meanwhile, or was
   * not stopped in time, pays that back out of its share: so it counts several times, and for so
   * long afterwards.
   *
   * @param sinceNs when the wait began, at the earliest
   * @param times how long paying a millisecond back takes
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
