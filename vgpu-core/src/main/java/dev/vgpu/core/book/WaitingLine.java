package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.schedule.UrgencyQueue;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The requests that wait, in order of class, then arrival, and who of them is served now. Nobody
 * passes the first one, but who takes nothing that the first one may need: see {@link
 * Placement#placeBeside}. Guarded by the {@link LeaseTable}'s lock.
 */
final class WaitingLine {
  /** Books a request on GPUs that have room. */
  interface Desk {
    /**
     * Books it.
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

  /** Whether one that comes now would be served before all who wait. */
  boolean isFirst(VirtualGpuRequest coming) {
    return line.isFirstInLine(coming.preemptionClass());
  }

  /** Serves one that does not wait, if it may pass those who do; null: it fits nowhere so. */
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

  /** Takes one out that gives up; whether it was still waiting. */
  boolean remove(PendingRequest waiting) {
    if (!line.remove(waiting)) {
      return false;
    }
    serve(); // it may have been in front of others that fit
    return true;
  }

  /** Takes those out who may not be served now, in their order. */
  List<PendingRequest> withdraw(Predicate<VirtualGpuRequest> which) {
    List<PendingRequest> found =
        line.inOrder().stream().filter(waiting -> which.test(waiting.asked.request())).toList();
    found.forEach(line::remove);
    serve();
    return found;
  }

  /** Sends some of those who wait away. */
  void failAll(Predicate<PendingRequest> which, RuntimeException because) {
    for (PendingRequest waiting : line.inOrder()) {
      if (which.test(waiting)) {
        boolean ignored = line.remove(waiting);
        waiting.fail(because);
      }
    }
    serve();
  }

  /** Grants to those who wait, as far as it goes. */
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

  /** What the first one leaves over goes to those behind it. */
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
