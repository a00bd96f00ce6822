package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.schedule.UrgencyQueue;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The waiting requests, in order of class, then arrival, and the choice of the one to serve now. A
 * request passes the first one only if it takes nothing that the first may need: see {@link
 * Placement#placeBeside}. Guarded by the {@link LeaseTable}'s lock.
 */
final class WaitingLine {
  /** Books a request on GPUs that have room. */
  interface Desk {
    /**
     * Books the request.
     *
     * @throws VgpuException if the lease cannot be written
     */
    Booking grant(Asked asked, List<GpuSlot> on);
  }

  private final Placement placement;
  private final Desk desk;
  private final UrgencyQueue<PendingRequest> line = new UrgencyQueue<>();

  WaitingLine(Placement placement, Desk desk) {
    this.placement = placement;
    this.desk = desk;
  }

  int size() {
    return line.size();
  }

  /** Whether an arrival would be served before all waiting requests. */
  boolean isFirst(VirtualGpuRequest coming) {
    return line.isFirstInLine(coming.preemptionClass());
  }

  /**
   * Serves a request that does not wait, if it may pass the waiting ones; null if it fits nowhere.
   */
  @Nullable Booking serveAtOnce(Asked asked) {
    VirtualGpuRequest request = asked.request();
    PendingRequest first = line.peek();
    List<GpuSlot> on =
        first == null || isFirst(request)
            ? placement.place(request)
            : placement.placeBeside(request, first.asked.request());
    if (on == null) {
      return null;
    }
    Booking booking = desk.grant(asked, on);
    if (isFirst(request)) {
      line.servedWithoutWaiting(request.preemptionClass());
    }
    return booking;
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

  /** Grants waiting requests, as far as they fit. */
  void serve() {
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
      waiting.grant(desk.grant(waiting.asked, on));
    } catch (VgpuException | SeatLostException e) { // the lease could not be written
      waiting.fail(e);
    }
  }
}
