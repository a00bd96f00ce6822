package dev.vgpu.simulation;

import java.util.Arrays;

/**
 * The latencies of requests, counted by length with a precision of 0.8 percent. Not thread-safe.
 */
public final class LatencyHistogram {
  private static final int BITS = 8;
  private static final int PARTS = 1 << BITS;

  private long[] counts = new long[0];
  private long count;
  private long largestNs;
  private double sumNs;

  LatencyHistogram() {}

  void add(long ns) {
    int index = index(ns);
    if (index >= counts.length) {
      counts = Arrays.copyOf(counts, index + PARTS);
    }
    counts[index]++;
    count++;
    sumNs += ns;
    largestNs = Math.max(largestNs, ns);
  }

  void clear() {
    Arrays.fill(counts, 0);
    count = 0;
    sumNs = 0;
    largestNs = 0;
  }

  /** {@return the number of requests} */
  public long count() {
    return count;
  }

  /** {@return the longest latency, in nanoseconds; 0 if there is none} */
  public long largestNs() {
    return largestNs;
  }

  /** {@return the mean latency, in nanoseconds; 0 if there is none} */
  public double meanNs() {
    return count == 0 ? 0 : sumNs / count;
  }

  /**
   * {@return the latency that this percent of requests do not exceed, in nanoseconds; 0 if there is
   * none}
   *
   * @param percent above 0, to 100
   */
  public long percentileNs(double percent) {
    long wanted = Math.max(1, (long) Math.ceil(count * percent / 100));
    long seen = 0;
    for (int i = 0; i < counts.length; i++) {
      seen += counts[i];
      if (seen >= wanted) {
        return Math.min(largestNs, highest(i));
      }
    }
    return largestNs;
  }

  /** Exact below {@link #PARTS}. Above, each power of two is divided into half as many parts. */
  private static int index(long ns) {
    if (ns < PARTS) {
      return (int) ns;
    }
    int shift = 63 - Long.numberOfLeadingZeros(ns) - (BITS - 1);
    return PARTS + (shift - 1) * (PARTS / 2) + (int) (ns >>> shift) - PARTS / 2;
  }

  private static long highest(int index) {
    if (index < PARTS) {
      return index;
    }
    int shift = (index - PARTS) / (PARTS / 2) + 1;
    long part = (index - PARTS) % (PARTS / 2) + (PARTS / 2L);
    return ((part + 1) << shift) - 1;
  }
}
