package dev.vgpu.core.book;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The virtual GPUs on which backends are at work. A backend may work for seconds, so it works
 * without the table's lock, and only what concerns the same virtual GPU waits. One thread at a time
 * works on the parts of GPUs that backends set aside, because only a part that is made or gone
 * tells what is left for the next one. Guarded by the {@link LeaseTable}'s lock, which a wait lets
 * go: nothing that was read before it may be relied on after it. The caller must hold that lock
 * once only.
 */
final class BackendWork {
  private final Condition ended;

  /** Read without the lock when the seat is given up. */
  private volatile boolean onParts;

  /** Creates one without any work; {@code table} is the table's lock. */
  BackendWork(ReentrantLock table) {
    this.ended = table.newCondition();
  }

  /** Whether a part of a GPU is being set aside, moved or given back. */
  boolean isOnParts() {
    return onParts;
  }

  /** Waits until no backend is at work on a virtual GPU. */
  void awaitEnd(Booking booking) {
    while (booking.inWork) {
      ended.awaitUninterruptibly();
    }
  }

  /** Whether a backend may work on a virtual GPU only when another work has ended. */
  boolean mustWait(Booking booking) {
    return booking.inWork || (booking.part && onParts);
  }

  /** Waits until a backend may work on a virtual GPU. */
  void awaitTurn(Booking booking) {
    while (mustWait(booking)) {
      ended.awaitUninterruptibly();
    }
  }

  /** Waits until a backend may work on parts. */
  void awaitParts() {
    while (onParts) {
      ended.awaitUninterruptibly();
    }
  }

  /** Begins work on a virtual GPU. Whoever begins work must end it. */
  void begin(Booking booking) {
    booking.inWork = true;
    onParts |= booking.part;
  }

  /** Ends work on a virtual GPU. Afterwards, requests may fit that did not before. */
  void end(Booking booking) {
    booking.inWork = false;
    onParts &= !booking.part;
    ended.signalAll();
  }
}
