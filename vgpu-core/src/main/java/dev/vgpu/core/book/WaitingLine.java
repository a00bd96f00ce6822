package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.core.schedule.UrgencyQueue;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The waiting requests, in order of class, then arrival, and the choice of the one to serve now. A
 * request passes the first one only if it takes nothing that the first may need: see {@link
 * Placement#placeBeside}. Guarded by the {@link LeaseTable}'s lock.
 */
final class WaitingLine {
  private static final Logger log = LoggerFactory.getLogger(WaitingLine.class);

  /** Settles requests. */
  interface Desk {
    /**
     * Books a request on GPUs that have room, and grants it now or soon.
     *
     * @throws VgpuException if the lease cannot be written
     */
    void grant(PendingRequest waiting, List<GpuBook> on);

    /** Refuses a request, and names who holds what it would need. */
    void refuse(PendingRequest waiting, String refusal, List<Booking> holders);
  }

  private final Placement placement;
  private final Desk desk;
  private final UrgencyQueue<PendingRequest> line = new UrgencyQueue<>();

  WaitingLine(Placement placement, Desk desk) {
    this.placement = placement;
    this.desk = desk;
  }

  /** Whether an arrival would be served before all waiting requests. */
  private boolean isFirst(VirtualGpuRequest coming) {
    return line.isFirstInLine(coming.preemptionClass());
  }

  /**
   * Serves or refuses a request that does not wait for others. Where a backend is at work, this is
   * decided when it is done: only then is it known what is left. Until then, it is in the line.
   */
  void decide(PendingRequest asked) {
    VirtualGpuRequest request = asked.asked.request();
    if (serveAtOnce(asked)) {
      return;
    }
    if (placement.mayFitSoon(request)) {
      asked.once = true;
      line.add(asked);
    } else {
      refuse(asked, isFirst(request) ? 0 : line.size());
    }
  }

  private void refuse(PendingRequest asked, int inFront) {
    String more = inFront == 0 ? "" : "; " + inFront + " requests wait in front";
    refuse(asked, placement.refusal(asked.asked.request(), more));
  }

  void refuse(PendingRequest asked, String refusal) {
    desk.refuse(asked, refusal, GpuBook.holders(placement.allowed(asked.asked.request())));
  }

  /**
   * Serves a request that does not wait, if it may pass the waiting ones; returns whether it fits
   * anywhere.
   */
  private boolean serveAtOnce(PendingRequest asked) {
    VirtualGpuRequest request = asked.asked.request();
    PendingRequest first = line.peek();
    List<GpuBook> on =
        first == null || isFirst(request)
            ? placement.place(request)
            : placement.placeBeside(request, first.asked.request());
    if (on == null) {
      return false;
    }
    grant(asked, on);
    if (isFirst(request)) {
      line.servedWithoutWaiting(request.preemptionClass());
    }
    return true;
  }

  void add(PendingRequest waiting) {
    line.add(waiting);
    serve();
  }

  /** Removes a request that gives up. Returns whether it was still waiting. */
  boolean remove(PendingRequest waiting) {
    if (!line.remove(waiting)) {
      return false;
    }
    serve(); // it may have been ahead of others that fit
    return true;
  }

  /** Removes the requests that may not be served now, and returns them in order. */
  List<PendingRequest> withdraw(Predicate<VirtualGpuRequest> which) {
    List<PendingRequest> found =
        line.inOrder().stream().filter(waiting -> which.test(waiting.asked.request())).toList();
    found.forEach(line::remove);
    serve();
    return found;
  }

  /** Fails some of the waiting requests. */
  void failAll(Predicate<PendingRequest> which, RuntimeException because) {
    for (PendingRequest waiting : line.inOrder()) {
      if (which.test(waiting)) {
        boolean ignored = line.remove(waiting);
        waiting.fail(because);
      }
    }
    serve();
  }

  /**
   * Grants waiting requests, as far as they fit. If one cannot be decided, it fails, and the others
   * are served.
   */
  void serve() {
    do {
      serveLine();
    } while (refuseSome());
  }

  private void serveLine() {
    for (PendingRequest first = line.peek(); first != null; first = line.peek()) {
      VirtualGpuRequest request = first.asked.request();
      List<GpuBook> on = ask(first, () -> placement.place(request));
      if (on != null) {
        line.poll();
        grant(first, on);
      } else if (!first.isSettled()) {
        serveBehind(first);
        return;
      }
    }
  }

  /** Refuses the requests that wait only for backends and do not fit; returns whether it did. */
  private boolean refuseSome() {
    int inFront = 0;
    boolean some = false;
    for (PendingRequest next : line.inOrder()) {
      VirtualGpuRequest request = next.asked.request();
      Boolean waits = ask(next, () -> !next.once || placement.mayFitSoon(request));
      if (Boolean.FALSE.equals(waits) && line.remove(next)) {
        refuse(next, inFront);
      }
      inFront += next.isSettled() ? 0 : 1;
      some |= next.isSettled();
    }
    return some;
  }

  /** Finds out something about a request in the line. If that fails, so does the request: null. */
  private <T> @Nullable T ask(PendingRequest waiting, Supplier<@Nullable T> what) {
    try {
      return what.get();
    } catch (RuntimeException | Error e) {
      boolean ignored = line.remove(waiting);
      fail(waiting, e);
      return null;
    }
  }

  /** Grants what the first request does not need to those behind it. */
  private void serveBehind(PendingRequest first) {
    for (PendingRequest next : line.inOrder()) {
      List<GpuBook> on =
          next == first
              ? null
              : ask(next, () -> placement.placeBeside(next.asked.request(), first.asked.request()));
      if (on != null && line.remove(next)) {
        grant(next, on);
      }
    }
  }

  private void grant(PendingRequest waiting, List<GpuBook> on) {
    try {
      desk.grant(waiting, on);
    } catch (RuntimeException | Error e) { // for example, the lease could not be written
      fail(waiting, e);
    }
  }

  private static void fail(PendingRequest waiting, Throwable because) {
    if (waiting.isSettled()) {
      log.error("after a request was settled: {}", waiting.asked.request(), because);
    } else if (because instanceof RuntimeException known) {
      waiting.fail(known);
    } else {
      waiting.fail(new VgpuException("a request could not be served", because));
    }
  }
}
