package dev.vgpu.core.turn;

import dev.vgpu.PreemptionClass;
import dev.vgpu.core.schedule.UrgencyQueue;
import org.jspecify.annotations.Nullable;

/** A thread that waits to get into its tenant's turn. Guarded by the seat, but for the outcome. */
final class Waiter extends UrgencyQueue.Node<Waiter> {
  final Thread thread = Thread.currentThread();
  final long memoryBytes;
  final @Nullable Attempt attempt;

  /** The next in the seat's list of those to wake. */
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

  /** Lets the thread in. */
  void admit() {
    settled = true;
  }

  /** Sends the thread away. */
  void fail(RuntimeException why) {
    failure = why;
    settled = true; // release: pairs with the acquire in isSettled, so that the failure is seen
  }

  /** After it has settled: throws what it was sent away with, if it was. */
  void throwIfFailed() {
    if (failure != null) {
      throw failure;
    }
  }
}
