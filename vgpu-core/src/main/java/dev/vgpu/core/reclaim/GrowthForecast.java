package dev.vgpu.core.reclaim;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The rate at which memory use grows. The rate is that of the slower half of the window, so a
 * single jump does not count as growth. Confined to one thread.
 */
final class GrowthForecast {
  private static final long WINDOW_NS = 1_000_000_000;
  private static final double MOST_BYTES = 1e18;

  private record Sample(long atNs, long bytes) {}

  private final Deque<Sample> samples = new ArrayDeque<>();

  void add(long nowNs, long bytes) {
    while (!samples.isEmpty() && nowNs - samples.getFirst().atNs > WINDOW_NS) {
      samples.removeFirst();
    }
    samples.addLast(new Sample(nowNs, bytes));
  }

  /**
   * The expected growth; 0 if there is no steady growth, or samples for half a window are missing.
   */
  long growthBytes(long aheadNs) {
    Sample first = samples.getFirst();
    Sample last = samples.getLast();
    long spanNs = last.atNs - first.atNs;
    if (spanNs < WINDOW_NS / 2) {
      return 0;
    }
    Sample middle = first;
    for (Sample sample : samples) {
      if (sample.atNs - first.atNs <= spanNs / 2) {
        middle = sample;
      }
    }
    double slower = Math.min(rate(first, middle), rate(middle, last));
    return slower <= 0 ? 0 : (long) Math.min(MOST_BYTES, slower * aheadNs);
  }

  private static double rate(Sample from, Sample to) {
    long ns = to.atNs - from.atNs;
    return ns <= 0 ? 0 : (double) (to.bytes - from.bytes) / ns;
  }
}
