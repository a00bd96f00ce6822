package dev.vgpu.simulation;

import java.util.List;

/** When a tenant's requests arrive, relative to when the tenant joins. */
public sealed interface Arrivals {
  /**
   * Each client sends its next request some time after it received the answer.
   *
   * @param clients the number of clients; above 0
   * @param thinkNs how long a client waits before its next request; 0 or more
   */
  record ClosedLoop(int clients, long thinkNs) implements Arrivals {}

  /**
   * At random times, independent of each other.
   *
   * @param perSecond the average rate; above 0
   */
  record Poisson(double perSecond) implements Arrivals {}

  /**
   * At a fixed interval, in bursts of one or more requests.
   *
   * @param everyNs from one burst to the next; above 0
   * @param offsetNs when the first burst comes; 0 or more
   * @param size the number of requests in a burst; above 0
   * @param spacingNs from one request of a burst to the next; 0 or more
   */
  record Bursts(long everyNs, long offsetNs, int size, long spacingNs) implements Arrivals {}

  /**
   * As recorded in a trace.
   *
   * @param requests in the order of arrival
   * @param lengthNs the trace repeats after this time; 0 means that it does not repeat
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
   * @param atNs when it arrives
   * @param kernels the number of its kernels; above 0
   */
  record Request(long atNs, int kernels) {}
}
