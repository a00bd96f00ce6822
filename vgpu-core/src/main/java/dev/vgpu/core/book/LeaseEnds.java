package dev.vgpu.core.book;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuUsage;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.spi.EnforcedLease;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/** Removes leases from the book. Safe for use by several threads. */
public final class LeaseEnds {
  private final NodeContext node;
  private final Lock lock;
  private final SeatMeter meter;
  private final @Nullable LeaseDirectory disk;
  private final Runnable serve;
  private volatile boolean givenUp;
  private volatile Runnable whenKept = () -> {};

  /** Creates one; {@code lock} is the table's, and {@code serve} grants to waiting requests. */
  LeaseEnds(
      NodeContext node, Lock lock, SeatMeter meter, @Nullable LeaseDirectory disk, Runnable serve) {
    this.node = node;
    this.lock = lock;
    this.meter = meter;
    this.disk = disk;
    this.serve = serve;
  }

  /** Stops all removals: another process decides now. */
  void giveUp() {
    givenUp = true;
  }

  /**
   * Records that a virtual GPU was closed or its owner is dead, and that its last call has left.
   */
  public void ended(Booking booking) {
    booking.ended = true;
    releaseIfUnused(booking);
  }

  /**
   * Books out a virtual GPU that has ended, if no process is under it any more. May scan all
   * processes of the node.
   */
  public void releaseIfUnused(Booking booking) {
    if (!booking.ended || booking.released || givenUp) {
      return;
    }
    if (booking.isInUse(lock)) {
      whenKept.run();
      return;
    }
    GpuUsage usage;
    lock.lock();
    try {
      if (!booking.ended || booking.released) {
        return;
      }
      if (booking.hasProcesses()) {
        whenKept.run(); // a program was named or has attached in the meantime
        return;
      }
      booking.released = true;
      usage = booking.finalUsage();
      booking.gate.end();
      EnforcedLease enforced = booking.enforced();
      if (enforced != null) {
        enforced.close();
      }
      if (disk != null) {
        disk.remove(booking.id);
      }
      booking.slots.forEach(slot -> slot.remove(booking));
      serve.run();
    } finally {
      lock.unlock();
    }
    meter.closed(booking, usage);
    booking.calls.released();
    node.listeners().publish(at -> new GpuEvent.Closed(at, booking.id, usage));
  }

  /** Whether any process is under it, or may still come. May scan all processes of the node. */
  boolean isInUse(Booking booking) {
    return booking.isInUse(lock);
  }

  /**
   * Sets the action that arranges a later check, run when an ended lease is kept for its programs.
   */
  public void whenKept(Runnable looksAgain) {
    whenKept = looksAgain;
  }
}
