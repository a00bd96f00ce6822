package dev.vgpu.bench.demo.figure;

import java.util.Collection;
import java.util.function.ToLongFunction;
import org.HdrHistogram.Histogram;

/**
 * Latencies of requests, measured from their scheduled arrival. Failed requests are counted, but
 * have no latency. Values are exact to three digits. Immutable.
 */
public final class Latencies {
  private static final int DIGITS = 3;
  private static final double NS_PER_MS = 1e6;

  private final Histogram histogram;
  private final long failed;

  private Latencies(Histogram histogram, long failed) {
    this.histogram = histogram;
    this.failed = failed;
  }

  /** {@return the times from each scheduled arrival to the complete answer} */
  public static Latencies of(Collection<RequestResult> results) {
    return of(results, RequestResult::latencyNs);
  }

  /** {@return how late requests were sent, which is the load generator's own error} */
  static Latencies ofSending(Collection<RequestResult> results) {
    return of(results, result -> result.sentNs() - result.scheduledNs());
  }

  private static Latencies of(
      Collection<RequestResult> results, ToLongFunction<RequestResult> timeNs) {
    Histogram histogram = new Histogram(DIGITS);
    long failed = 0;
    for (RequestResult result : results) {
      if (result.isOk()) {
        histogram.recordValue(Math.max(0, timeNs.applyAsLong(result)));
      } else {
        failed++;
      }
    }
    return new Latencies(histogram, failed);
  }

  /** {@return how many requests were answered} */
  public long count() {
    return histogram.getTotalCount();
  }

  /** {@return how many requests failed} */
  public long failed() {
    return failed;
  }

  /**
   * {@return the latency within which a part of the requests was answered, in milliseconds; NaN if
   * none was answered}
   *
   * @param percentile 0 to 100
   */
  public double percentileMs(double percentile) {
    return count() == 0 ? Double.NaN : histogram.getValueAtPercentile(percentile) / NS_PER_MS;
  }

  /** {@return the longest latency, in milliseconds; NaN if no request was answered} */
  public double maxMs() {
    return percentileMs(100);
  }
}
