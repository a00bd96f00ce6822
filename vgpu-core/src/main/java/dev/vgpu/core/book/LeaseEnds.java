package dev.vgpu.core.book;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuUsage;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.spi.EnforcedLease;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes leases from the book. While a backend closes one, the table's lock is not held. Safe for
 * use by several threads.
 */
public final class LeaseEnds {
  private static final Logger log = LoggerFactory.getLogger(LeaseEnds.class);

  private final NodeContext node;
  private final Lock lock;
  private final BackendWork work;
  private final SeatMeter meter;
  private final @Nullable LeaseDirectory disk;
  private final Runnable serve;
  private volatile boolean givenUp;
  private volatile Runnable whenKept = () -> {};

  /** Creates one; {@code lock} is the table's, and {@code serve} grants to waiting requests. */
  LeaseEnds(
      NodeContext node,
      Lock lock,
      BackendWork work,
      SeatMeter meter,
      @Nullable LeaseDirectory disk,
      Runnable serve) {
    this.node = node;
    this.lock = lock;
    this.work = work;
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
   * processes of the node. Giving back a part of a GPU takes long: if other parts are in work, or
   * nobody waits for it, another thread does it.
   */
  public void releaseIfUnused(Booking booking) {
    if (!booking.ended || booking.released || givenUp) {
      return;
    }
    if (booking.isInUse(lock)) {
      whenKept.run();
      return;
    }
    boolean later;
    lock.lock();
    try {
      if (booking.leaving) {
        return;
      }
      later = booking.part && (booking.calls.localGate() == null || work.isOnParts());
      booking.leaving = later;
    } finally {
      lock.unlock();
    }
    if (later) {
      node.workers().execute(() -> releaseLater(booking));
    } else {
      release(booking);
    }
  }

  private void releaseLater(Booking booking) {
    try {
      release(booking);
    } finally {
      lock.lock();
      try {
        booking.leaving = false;
      } finally {
        lock.unlock();
      }
    }
  }

  private void release(Booking booking) {
    GpuUsage usage;
    lock.lock();
    try {
      if (booking.released) {
        return;
      }
      work.awaitTurn(booking);
      if (!booking.ended || booking.released || givenUp) {
        return;
      }
      if (booking.hasProcesses()) {
        whenKept.run(); // a program was named or has attached in the meantime
        return;
      }
      usage = booking.finalUsage();
      shut(booking);
      work.begin(booking);
    } finally {
      lock.unlock();
    }
    bookOut(booking);
    meter.closed(booking, usage);
    booking.calls.released();
    node.listeners().publish(at -> new GpuEvent.Closed(at, booking.id, usage));
  }

  /** From now on, nothing starts in a virtual GPU. The caller holds the table's lock. */
  void shut(Booking booking) {
    booking.released = true;
    booking.gate.end();
  }

  /**
   * Has the backend close a virtual GPU, and only then frees its capacity: otherwise its part of a
   * GPU could be promised while it is there. Work on it has begun, and ends here. If another
   * process decides by now, it finds the lease on disk.
   */
  void bookOut(Booking booking) {
    EnforcedLease enforced = booking.enforced();
    try {
      if (enforced != null && !givenUp) {
        enforced.close();
      }
    } catch (RuntimeException e) {
      log.error("a backend could not close a virtual GPU: id={}", booking.id, e);
    } finally {
      lock.lock();
      try {
        booking.slots.forEach(slot -> slot.remove(booking));
        if (disk != null) {
          disk.remove(booking.id);
        }
      } finally {
        lock.unlock();
        workDone(booking);
      }
    }
  }

  /** Ends a backend's work on a virtual GPU, and grants what can be granted now. */
  void workDone(Booking booking) {
    lock.lock();
    try {
      work.end(booking);
      serve.run();
    } finally {
      lock.unlock();
    }
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
