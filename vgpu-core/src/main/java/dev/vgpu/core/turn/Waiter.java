package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.UrgencyQueue;
import dev.vgpu.request.PreemptionClass;
import org.jspecify.annotations.Nullable;

/**
 * A thread that waits to enter its tenant's turn. Guarded by the seat's lock, except for the
 * outcome.
 */
final class Waiter extends UrgencyQueue.Node<Waiter> {
  final Thread thread = Thread.currentThread();
  final long memoryBytes;
  final @Nullable Attempt attempt;

  /** The next waiter in the seat's list of those to wake. */
  @Nullable Waiter nextReady;

  private @Nullable RuntimeException failure;
  private volatile boolean settled;

  Waiter(PreemptionClass preemptionClass, long memoryBytes, @Nullable Attempt attempt) {
    super(preemptionClass);
    this.memoryBytes = memoryBytes;
    this.attempt = attempt;
  }

  boolean isSettled() {
    return settled;
  }

  /** Admits the thread. */
  void admit() {
    settled = true;
  }

  /** Rejects the thread. */
  void fail(RuntimeException why) {
    failure = why;
    settled = true; // release: pairs with the acquire in isSettled, so that the failure is seen
  }

  /** Throws the failure, if the thread was rejected. Call this after the waiter has settled. */
  void throwIfFailed() {
    if (failure != null) {
      throw failure;
    }
  }
}
