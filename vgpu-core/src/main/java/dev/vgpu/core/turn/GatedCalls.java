package dev.vgpu.core.turn;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.core.turn.Attempt.Cancellable;
import dev.vgpu.core.turn.ThreadTurns.Nesting;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** Runs calls inside a gate. Safe for use by several threads. */
public final class GatedCalls {
  private static final long FOR_EVER = Long.MAX_VALUE;

  private final InProcessGate gate;

  /**
   * Creates one.
   *
   * @param gate admits the calls
   */
  public GatedCalls(InProcessGate gate) {
    this.gate = gate;
  }

  /**
   * Runs a call.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how to run it
   * @param owner kept reachable until the call has ended
   * @return its result
   * @throws Exception any exception of the call, or the reason why it could not start
   */
  public <T extends @Nullable Object> T call(
      Callable<? extends T> call, CallOptions options, Object owner) throws Exception {
    ThreadTurns turns = ThreadTurns.current();
    Nesting nesting = turns.nesting(gate);
    if (nesting != Nesting.OUTERMOST) {
      return nested(call, turns, nesting);
    }
    long memoryBytes = options.memory().bytes();
    enter(options, memoryBytes);
    push(turns, null, memoryBytes);
    try {
      return call.call();
    } finally {
      try {
        turns.popCall(gate);
      } finally {
        gate.exit(memoryBytes);
        Reference.reachabilityFence(owner);
      }
    }
  }

  /**
   * Begins to use the GPU.
   *
   * @param options how to enter
   * @param owner kept reachable until the turn is closed
   * @return the turn
   * @throws InterruptedException if interrupted while waiting
   */
  public GpuTurn enter(CallOptions options, Object owner) throws InterruptedException {
    ThreadTurns turns = ThreadTurns.current();
    Nesting nesting = turns.nesting(gate);
    if (nesting != Nesting.OUTERMOST) {
      EnteredTurn.Nested nested = new EnteredTurn.Nested(gate, nesting);
      if (gate.attachment() != null) {
        pushNested(turns, nested, nesting);
      }
      return nested;
    }
    long memoryBytes = options.memory().bytes();
    EnteredTurn turn = new EnteredTurn(gate, turns, memoryBytes, owner);
    enter(options, memoryBytes);
    push(turns, turn, memoryBytes);
    turns.keep(turn);
    return turn;
  }

  private void push(ThreadTurns turns, @Nullable EnteredTurn turn, long memoryBytes) {
    boolean pushed = false;
    try {
      turns.push(gate, turn);
      pushed = true;
    } finally {
      if (!pushed) {
        gate.exit(memoryBytes);
      }
    }
  }

  /** Inside other turns, the thread may be bound to another virtual GPU. */
  private void pushNested(ThreadTurns turns, EnteredTurn.@Nullable Nested nested, Nesting nesting) {
    boolean pushed = false;
    try {
      turns.push(gate, nested);
      pushed = true;
    } finally {
      if (!pushed) {
        nesting.release();
      }
    }
  }

  private <T extends @Nullable Object> T nested(
      Callable<? extends T> call, ThreadTurns turns, Nesting nesting) throws Exception {
    boolean binds = gate.attachment() != null;
    if (binds) {
      pushNested(turns, null, nesting);
    }
    try {
      return call.call();
    } finally {
      if (binds) {
        turns.popCall(gate);
      }
      nesting.release();
    }
  }

  private void enter(CallOptions options, long memoryBytes) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    if (memoryBytes == 0 && gate.tryEnter()) {
      return;
    }
    gate.enter(waiter(options, memoryBytes, null), false, timeoutNs(options));
  }

  private Waiter waiter(CallOptions options, long memoryBytes, @Nullable Attempt attempt) {
    return new Waiter(
        options.preemptionClass().orElse(gate.preemptionClass()), memoryBytes, attempt);
  }

  private static long timeoutNs(CallOptions options) {
    Optional<Duration> timeout = options.timeout();
    return timeout.isPresent() ? toNanos(timeout.get()) : FOR_EVER; // map() would box the result
  }

  private static long toNanos(Duration timeout) {
    try {
      return timeout.toNanos();
    } catch (ArithmeticException e) {
      return FOR_EVER; // more than 292 years
    }
  }

  /**
   * Runs a call that may be cancelled and run again.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how to run it
   * @param owner kept reachable until the call has ended
   * @return its result
   * @throws Exception any exception of an attempt that was not cancelled, or the reason why none
   *     could start
   */
  public <T extends @Nullable Object> T call(
      PreemptibleCall<? extends T> call, CallOptions options, Object owner) throws Exception {
    ThreadTurns turns = ThreadTurns.current();
    Nesting nesting = turns.nesting(gate);
    if (nesting != Nesting.OUTERMOST) {
      return this.<T>nested(call::call, turns, nesting);
    }
    try {
      return runUntilDone(call, options);
    } finally {
      Reference.reachabilityFence(owner);
    }
  }

  private <T extends @Nullable Object> T runUntilDone(
      PreemptibleCall<? extends T> call, CallOptions options) throws Exception {
    long budget = 0; // kept from the first attempt to the last: nobody else can have it meanwhile
    try {
      for (int cancelled = 0; ; cancelled++) {
        boolean mayBeCancelled = cancelled < options.maxPreemptions() && !gate.isCancelBroken();
        Cancellable cancellable = mayBeCancelled ? Cancellable.YES : Cancellable.NO;
        Attempt attempt = new Attempt(call, gate, cancellable);
        enterAttempt(options, attempt, cancelled > 0);
        budget = options.memory().bytes();
        Outcome<T> outcome = run(call, attempt);
        if (!outcome.cancelled) {
          return outcome.get();
        }
      }
    } finally {
      if (budget > 0) {
        gate.giveBudgetBack(budget);
      }
    }
  }

  private void enterAttempt(CallOptions options, Attempt attempt, boolean again)
      throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    Waiter waiter = waiter(options, again ? 0 : options.memory().bytes(), attempt);
    gate.enter(waiter, again, again ? FOR_EVER : timeoutNs(options));
  }

  private void pushAttempt(ThreadTurns turns, Attempt attempt) {
    boolean pushed = false;
    try {
      turns.push(gate, null);
      pushed = true;
    } finally {
      if (!pushed) {
        attempt.end();
        gate.exit(attempt);
      }
    }
  }

  private <T extends @Nullable Object> Outcome<T> run(
      PreemptibleCall<? extends T> call, Attempt attempt) {
    if (!attempt.begin()) {
      gate.exit(attempt);
      return Outcome.ofCancelled();
    }
    ThreadTurns turns = ThreadTurns.current();
    pushAttempt(turns, attempt);
    Outcome<T> outcome;
    try {
      outcome = new Outcome<>(call.call(), null, false);
      attempt.end();
    } catch (InterruptedException e) {
      attempt.end(); // the caller's thread is asked to stop; do not repeat the call
      outcome = new Outcome<>(null, e, false);
    } catch (Exception e) {
      outcome = attempt.end() ? Outcome.ofCancelled() : new Outcome<>(null, e, false);
    } catch (Error e) {
      attempt.end();
      throw e;
    } finally {
      try {
        turns.popCall(gate);
      } finally {
        // The turn is released before waiting for cancel(), which is the caller's code.
        gate.exit(attempt);
        attempt.awaitCancel();
      }
    }
    return outcome;
  }

  private record Outcome<T extends @Nullable Object>(
      @Nullable T result, @Nullable Exception failure, boolean cancelled) {
    static <T extends @Nullable Object> Outcome<T> ofCancelled() {
      return new Outcome<>(null, null, true);
    }

    @SuppressWarnings("NullAway") // without a failure, the result is what the call returned
    T get() throws Exception {
      if (failure != null) {
        throw failure;
      }
      return result;
    }
  }
}
