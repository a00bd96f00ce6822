package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.UrgencyQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * The waiting requests, in order of class, then arrival, and the choice of the one to serve now. A
 * request passes the first one only if it takes nothing that the first may need: see {@link
 * Placement#placeBeside}. Guarded by the {@link LeaseTable}'s lock.
 */
final class WaitingLine {
  /** Settles requests. */
  interface Desk {
    /**
     * Books a request on GPUs that have room, and grants it now or soon.
     *
     * @throws VgpuException if the lease cannot be written
     */
    void grant(PendingRequest waiting, List<GpuSlot> on);

    /** Refuses a request, and names who holds what it would need. */
    void refuse(PendingRequest waiting, String refusal, List<Booking> holders);
  }

  private final Placement placement;
  private final Desk desk;
  private final UrgencyQueue<PendingRequest> line = new UrgencyQueue<>();

  /** Requests that do not wait in line, and may fit when a backend has done its work. */
  private final List<PendingRequest> undecided = new ArrayList<>();

  WaitingLine(Placement placement, Desk desk) {
    this.placement = placement;
    this.desk = desk;
  }

  /** Whether an arrival would be served before all waiting requests. */
  private boolean isFirst(VirtualGpuRequest coming) {
    return line.isFirstInLine(coming.preemptionClass());
  }

  /**
   * Serves or refuses a request that does not wait in line. Where a backend is at work, this is
   * decided when it is done: only then is it known what is left.
   */
  void decide(PendingRequest asked) {
    VirtualGpuRequest request = asked.asked.request();
    if (serveAtOnce(asked)) {
      return;
    }
    if (placement.mayFitSoon(request)) {
      undecided.add(asked);
    } else {
      String more = isFirst(request) ? "" : "; " + line.size() + " requests wait in front";
      refuse(asked, placement.refusal(request, more));
    }
  }

  void refuse(PendingRequest asked, String refusal) {
    desk.refuse(asked, refusal, GpuSlot.holders(placement.allowed(asked.asked.request())));
  }

  /**
   * Serves a request that does not wait, if it may pass the waiting ones; returns whether it fits
   * anywhere.
   */
  private boolean serveAtOnce(PendingRequest asked) {
    VirtualGpuRequest request = asked.asked.request();
    PendingRequest first = line.peek();
    List<GpuSlot> on =
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
    for (PendingRequest waiting : List.copyOf(undecided)) {
      if (which.test(waiting) && undecided.remove(waiting)) {
        waiting.fail(because);
      }
    }
    serve();
  }

  /** Grants waiting requests, as far as they fit. */
  void serve() {
    serveLine();
    List<PendingRequest> again = List.copyOf(undecided);
    undecided.clear();
    again.forEach(this::decide);
  }

  private void serveLine() {
    for (PendingRequest first = line.peek(); first != null; first = line.peek()) {
      List<GpuSlot> on = placement.place(first.asked.request());
      if (on == null) {
        serveBehind(first);
        return;
      }
      line.poll();
      grant(first, on);
    }
  }

  /** Grants what the first request does not need to those behind it. */
  private void serveBehind(PendingRequest first) {
    for (PendingRequest next : line.inOrder()) {
      List<GpuSlot> on =
          next == first ? null : placement.placeBeside(next.asked.request(), first.asked.request());
      if (on != null && line.remove(next)) {
        grant(next, on);
      }
    }
  }

  private void grant(PendingRequest waiting, List<GpuSlot> on) {
    try {
      desk.grant(waiting, on);
    } catch (RuntimeException e) { // for example, the lease could not be written
      if (waiting.isSettled()) {
        throw e;
      }
      waiting.fail(e);
    }
  }
}
