package dev.vgpu.core.turn;

import dev.vgpu.PreemptibleCall;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * One attempt of a preemptible call. The scheduler's side asks it to end, and the caller's side
 * runs it. {@code cancel()} is invoked at most once, while {@code call()} runs or just after it has
 * ended. The caller does not start the next attempt until {@code cancel()} has returned or its
 * deadline has passed.
 */
final class Attempt {
  /** How long a {@code cancel()} may take before it is reported. */
  static final Duration CANCEL_DEADLINE = Duration.ofSeconds(1);

  private enum State {
    /** Not started. */
    PENDING,
    /** Asked to end before it started: it never runs. */
    ABORTED,
    RUNNING,
    /** {@code cancel()} is about to be invoked, or has been. */
    CANCELLING,
    ENDED
  }

  /** Whether the attempt may be asked to end. */
  enum Cancellable {
    YES,
    NO
  }

  private final Cancellable cancellable;
  private final PreemptibleCall<?> call;
  private final InProcessGate gate;
  private final AtomicReference<State> state = new AtomicReference<>(State.PENDING);
  private final CountDownLatch cancelReturned = new CountDownLatch(1);

  /** Creates an attempt. If it is not cancellable, it runs to its end whichever tenant arrives. */
  Attempt(PreemptibleCall<?> call, InProcessGate gate, Cancellable cancellable) {
    this.call = call;
    this.gate = gate;
    this.cancellable = cancellable;
  }

  /**
   * Asks the attempt to end. Called with the seat held.
   *
   * @return whether it was running or about to; the caller must then call {@link #cancel} without
   *     the seat
   */
  boolean requestEnd() {
    return cancellable == Cancellable.YES
        && (state.compareAndSet(State.PENDING, State.ABORTED)
            || state.compareAndSet(State.RUNNING, State.CANCELLING));
  }

  /** Invokes the caller's {@code cancel()}, on the canceller's thread. */
  void cancel() {
    if (state.get() != State.CANCELLING) {
      return;
    }
    try {
      call.cancel();
    } catch (Throwable e) {
      gate.cancelFailed("cancel() threw " + e, e);
    } finally {
      cancelReturned.countDown();
    }
  }

  /** Starts the attempt on the caller's thread. Returns false if it was asked to end before. */
  boolean begin() {
    return state.compareAndSet(State.PENDING, State.RUNNING);
  }

  /** Ends the attempt on the caller's thread. Returns whether it was asked to end before that. */
  boolean end() {
    return !state.compareAndSet(State.RUNNING, State.ENDED);
  }

  /**
   * If {@code cancel()} is to be invoked, waits until it has returned, and reports one that hangs.
   */
  void awaitCancel() {
    if (state.get() != State.CANCELLING) {
      return;
    }
    boolean interrupted = false;
    long nanosLeft = CANCEL_DEADLINE.toNanos();
    long startNs = gate.nanoTime();
    boolean returned = false;
    while (!returned && nanosLeft > 0) {
      try {
        returned = cancelReturned.await(nanosLeft, TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
      nanosLeft = CANCEL_DEADLINE.toNanos() - (gate.nanoTime() - startNs);
    }
    if (!returned && cancelReturned.getCount() > 0) {
      gate.cancelFailed(
          "cancel() has not returned within " + CANCEL_DEADLINE.toMillis() + " ms", null);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
