package dev.vgpu.core.turn;

import dev.vgpu.PreemptibleCall;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * One attempt of a preemptible call. The scheduler's side asks for its end; the caller's side runs
 * it; {@code cancel()} is invoked at most once, only while {@code call()} runs, and the caller does
 * not go on to the next attempt before {@code cancel()} has returned.
 */
final class Attempt {
  /** How long a {@code cancel()} may take before it is reported. */
  static final Duration CANCEL_DEADLINE = Duration.ofSeconds(1);

  private enum State {
    /** Not begun. */
    PENDING,
    /** Asked to end before it began: it never runs. */
    ABORTED,
    RUNNING,
    /** {@code cancel()} is to be invoked, or was. */
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

  /** Makes one; one that is not cancellable runs to its end whoever arrives. */
  Attempt(PreemptibleCall<?> call, InProcessGate gate, Cancellable cancellable) {
    this.call = call;
    this.gate = gate;
    this.cancellable = cancellable;
  }

  /**
   * Asks for the end. Called with the seat held.
   *
   * @return whether it ran or was about to; {@link #cancel} is then to be called, without the seat
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

  /** The caller's thread begins it: false if it was asked to end before. */
  boolean begin() {
    return state.compareAndSet(State.PENDING, State.RUNNING);
  }

  /** The caller's thread has ended it: whether it was asked to end before that. */
  boolean end() {
    return !state.compareAndSet(State.RUNNING, State.ENDED);
  }

  /** Waits until {@code cancel()} has returned, if it was to be invoked; reports one that hangs. */
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
