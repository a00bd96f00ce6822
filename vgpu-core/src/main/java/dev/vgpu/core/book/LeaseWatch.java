package dev.vgpu.core.book;

import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.watch.GpuEvent;
import java.util.concurrent.atomic.AtomicBoolean;

/** Forwards what the processes of a virtual GPU do. Safe for use by several threads. */
final class LeaseWatch implements EnforcedLease.Listener {
  private final NodeContext node;
  private final LeaseEnds ends;
  private final Booking booking;

  /** Whether a look is about to begin; however often its programs come and go, one is enough. */
  private final AtomicBoolean looking = new AtomicBoolean();

  LeaseWatch(NodeContext node, LeaseEnds ends, Booking booking) {
    this.node = node;
    this.ends = ends;
    this.booking = booking;
  }

  @Override
  public void wanted() {
    if (!booking.spatial) {
      booking.gate.processesWanted();
    }
  }

  @Override
  public void drained() {
    // A spatial lease has no turn that could end, but a suspension waits for this event.
    if (!booking.spatial || booking.suspended) {
      booking.gate.processesDrained();
    }
  }

  @Override
  public void suspect(String reason) {
    node.listeners().publish(at -> new GpuEvent.SuspectReport(at, booking.id, reason));
  }

  @Override
  public void yielded(String by, long times) {
    booking.gate.yielded(times);
    node.preemptions().add(booking.id, by, 0, times);
  }

  @Override
  public void disturbed(String reason) {
    node.listeners().publish(at -> new GpuEvent.Disturbed(at, booking.id, reason));
  }

  private void release() {
    looking.set(false); // first: a program that ends from now on needs another look
    ends.releaseIfUnused(booking);
  }

  @Override
  public void processes(int attached) {
    if (attached == 0 && booking.ended && looking.compareAndSet(false, true)) {
      // Not on the backend's thread, because the backend is asked to close the lease.
      node.workers().execute(this::release);
    }
  }
}
