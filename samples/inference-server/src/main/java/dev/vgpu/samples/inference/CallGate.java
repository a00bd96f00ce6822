package dev.vgpu.samples.inference;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Admits calls until it is closed, and reports when the last one has left. */
final class CallGate {
  private static final int ALL = Integer.MAX_VALUE;
  private static final long PATIENCE_MS = 1_000;

  private final Semaphore places = new Semaphore(ALL);
  private volatile boolean closed;

  /** {@return whether the caller is inside now, and must {@link #leave}} */
  boolean tryEnter() {
    if (closed || !places.tryAcquire()) {
      return false;
    }
    if (closed) {
      places.release();
      return false;
    }
    return true;
  }

  /** Must be called when a call that entered has ended. */
  void leave() {
    places.release();
  }

  /** {@return whether {@link #close} was called} */
  boolean isClosed() {
    return closed;
  }

  /** Admits no further calls. Does not wait. */
  void close() {
    closed = true;
  }

  /** {@return whether, after at most a second, no call is inside and none will be} */
  boolean closeAndAwait() {
    closed = true;
    boolean interrupted = false;
    try {
      while (true) {
        try {
          boolean empty = places.tryAcquire(ALL, PATIENCE_MS, TimeUnit.MILLISECONDS);
          if (empty) {
            places.release(ALL);
          }
          return empty;
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
