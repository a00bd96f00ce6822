package dev.vgpu.core.simulate;

import java.util.List;

/** When a tenant's requests come, counted from when the tenant joins. */
public sealed interface Arrivals {
  /**
   * Each client sends its next request some time after it has got the answer.
   *
   * @param clients how many; above 0
   * @param thinkNs how long each waits before its next request; 0 or more
   */
  record ClosedLoop(int clients, long thinkNs) implements Arrivals {}

  /**
   * At random, independent of each other.
   *
   * @param perSecond how many come on average; above 0
   */
  record Poisson(double perSecond) implements Arrivals {}

  /**
   * Several at a time, at even distances; one at a time is a fixed interval.
   *
   * @param everyNs from one burst to the next; above 0
   * @param offsetNs when the first one comes; 0 or more
   * @param size how many requests; above 0
   * @param spacingNs from one request of a burst to the next; 0 or more
   */
  record Bursts(long everyNs, long offsetNs, int size, long spacingNs) implements Arrivals {}

  /**
   * As they once came.
   *
   * @param requests in the order of arrival
   * @param lengthNs after so long it begins anew; 0: it does not
   */
  record Recorded(List<Request> requests, long lengthNs) implements Arrivals {
    /** Copies the list. */
    public Recorded {
      requests = List.copyOf(requests);
    }
  }

  /**
   * One request of a trace.
   *
   * @param atNs when it comes
   * @param kernels how many kernels it takes; above 0
   */
  record Request(long atNs, int kernels) {}
}
