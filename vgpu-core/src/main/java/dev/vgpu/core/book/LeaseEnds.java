package dev.vgpu.core.book;

import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuUsage;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Executor;
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

  /** What waits to be given back until a backend's work has ended, in order. */
  private final Queue<Booking> leaving = new ArrayDeque<>();

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

  /** Throws if this process no longer decides. */
  void checkDecides() {
    if (givenUp) {
      throw SeatLostException.givenUp();
    }
  }

  /**
   * Records that {@link #ended} will be called. Until then, requests wait for what becomes free:
   * otherwise a client could not rely on acquiring again what it has just closed.
   */
  public void ending(Booking booking) {
    booking.ending = true;
  }

  /**
   * Records that a virtual GPU was closed or its owner is dead, and that its last call has left.
   */
  public void ended(Booking booking) {
    booking.ended = true;
    releaseIfUnused(booking);
    if (booking.ending) {
      booking.ending = false;
      lock.lock();
      try {
        serve.run(); // it may be kept for its programs, and what waited for it is refused
      } finally {
        lock.unlock();
      }
    }
  }

  /**
   * Books out a virtual GPU that has ended, if no process is under it any more. May scan all
   * processes of the node. Nobody waits here for the work of a backend, only for a part of this
   * process's own that is given back.
   */
  public void releaseIfUnused(Booking booking) {
    if (!booking.ended || booking.released || givenUp) {
      return;
    }
    GpuUsage usage = null;
    try {
      if (booking.isInUse(lock)) {
        whenKept.run();
      } else {
        usage = beginOrQueue(booking);
      }
    } catch (RuntimeException e) {
      log.error("a virtual GPU that has ended will be looked at again: id={}", booking.id, e);
      whenKept.run();
    }
    if (usage != null) {
      boolean awaited = !booking.part || booking.calls.localGate() != null;
      finish(booking, usage, awaited ? Runnable::run : node.workers());
    }
  }

  private @Nullable GpuUsage beginOrQueue(Booking booking) {
    lock.lock();
    try {
      if (!booking.leaving && work.mustWait(booking)) {
        booking.leaving = true;
        leaving.add(booking);
      }
      return booking.leaving ? null : begin(booking);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Begins to give a virtual GPU back, and returns its use; null if that may not be now. The caller
   * holds the table's lock.
   */
  private @Nullable GpuUsage begin(Booking booking) {
    if (booking.released || givenUp) {
      return null;
    }
    if (booking.hasProcesses()) {
      whenKept.run(); // a program was named or has attached in the meantime
      return null;
    }
    GpuUsage usage = booking.finalUsage();
    shut(booking);
    work.begin(booking);
    return usage;
  }

  private void finish(Booking booking, GpuUsage usage, Executor on) {
    on.execute(
        () -> {
          bookOut(booking);
          meter.closed(booking, usage);
          booking.calls.released();
          node.listeners().publish(at -> new GpuEvent.Closed(at, booking.id, usage));
        });
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
        if (!givenUp) { // otherwise what the others get is not for this process to change
          booking.books.forEach(book -> book.remove(booking));
        }
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
    workDone(List.of(booking));
  }

  /**
   * The same for several at once. What waits to be given back comes first, as requests may fit then
   * only.
   */
  void workDone(Collection<Booking> bookings) {
    lock.lock();
    try {
      bookings.forEach(work::end);
      leaving.removeIf(this::giveBack);
      serve.run();
    } finally {
      lock.unlock();
    }
  }

  /** Gives back what waits for that, if it may be now; returns whether it waits no more. */
  private boolean giveBack(Booking booking) {
    if (work.mustWait(booking)) {
      return false;
    }
    booking.leaving = false;
    GpuUsage usage = begin(booking);
    if (usage != null) {
      finish(booking, usage, node.workers());
    }
    return true;
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
