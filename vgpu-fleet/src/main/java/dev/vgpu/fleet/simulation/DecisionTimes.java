package dev.vgpu.fleet.simulation;

import java.util.Arrays;

/** The durations of decisions. Confined to one thread. */
public final class DecisionTimes {
  private long[] times = new long[1024];
  private int size;

  void add(long ns) {
    if (size == times.length) {
      times = Arrays.copyOf(times, 2 * size);
    }
    times[size++] = ns;
  }

  /**
   * {@return a quantile of the durations in ns; 0 if there are none}
   *
   * @param part for example 0.99
   */
  public long quantile(double part) {
    long[] sorted = Arrays.copyOf(times, size);
    Arrays.sort(sorted);
    return size == 0 ? 0 : sorted[Math.min(size - 1, (int) (part * size))];
  }

  /** {@return the mean in ns; 0 if there are none} */
  public double mean() {
    return Arrays.stream(times, 0, size).average().orElse(0);
  }
}
