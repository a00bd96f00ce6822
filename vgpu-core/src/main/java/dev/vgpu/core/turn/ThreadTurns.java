package dev.vgpu.core.turn;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The gates that the current thread is inside of, so that a call within a call is let through.
 * Confined to its thread. Holds a gate only while the thread is inside, so nothing outlives a
 * closed virtual GPU.
 */
final class ThreadTurns {
  private static final ThreadLocal<ThreadTurns> CURRENT = ThreadLocal.withInitial(ThreadTurns::new);

  private @Nullable InProcessGate[] gates = new @Nullable InProcessGate[4];

  /** Beside each gate the turn that {@code enter} gave out, or null for a call. */
  private @Nullable EnteredTurn[] turns = new @Nullable EnteredTurn[4];

  private int count;

  static ThreadTurns current() {
    return CURRENT.get();
  }

  /**
   * Whether the thread is inside the gate already. A turn that {@code enter} gave out is retained
   * then, so that another thread which closes it does not end it under a nested call.
   *
   * @throws IllegalStateException if the thread is inside another gate of the same GPU: the call
   *     would wait for its own thread to leave
   */
  Nesting nesting(InProcessGate gate) {
    if (count == 0) {
      return Nesting.OUTERMOST;
    }
    return search(gate);
  }

  private Nesting search(InProcessGate gate) {
    InProcessGate other = null;
    for (int i = count - 1; i >= 0; i--) {
      EnteredTurn turn = turns[i];
      if (turn != null && turn.isEnded()) {
        removeAt(i);
      } else if (gates[i] == gate) {
        if (turn == null) {
          return Nesting.IN_CALL;
        }
        if (turn.tryRetain()) {
          return new Nesting(turn);
        }
        removeAt(i);
      } else if (gates[i] != null && gates[i].sharesGpuWith(gate)) {
        other = gates[i];
      }
    }
    if (other != null) {
      throw new IllegalStateException(
          "a call of "
              + other.id()
              + " makes a call of "
              + gate.id()
              + " on the same GPU and would wait for itself for ever");
    }
    return Nesting.OUTERMOST;
  }

  void push(InProcessGate gate, @Nullable EnteredTurn turn) {
    if (count == gates.length) {
      gates = Arrays.copyOf(gates, 2 * count);
      turns = Arrays.copyOf(turns, 2 * count);
    }
    gates[count] = gate;
    turns[count] = turn;
    count++;
  }

  /** Takes out the innermost call of the gate. */
  void popCall(InProcessGate gate) {
    for (int i = count - 1; i >= 0; i--) {
      if (gates[i] == gate && turns[i] == null) {
        removeAt(i);
        return;
      }
    }
  }

  /** Takes out a turn, if it is this thread's. */
  void remove(EnteredTurn turn) {
    for (int i = count - 1; i >= 0; i--) {
      if (turns[i] == turn) {
        removeAt(i);
        return;
      }
    }
  }

  private void removeAt(int i) {
    count--;
    System.arraycopy(gates, i + 1, gates, i, count - i);
    System.arraycopy(turns, i + 1, turns, i, count - i);
    gates[count] = null;
    turns[count] = null;
  }

  /** How a call stands to what its thread is inside of. */
  static final class Nesting {
    /** Nothing encloses it. */
    static final Nesting OUTERMOST = new Nesting(null);

    /** A call of the same gate encloses it. */
    static final Nesting IN_CALL = new Nesting(null);

    private final @Nullable EnteredTurn retained;

    /** Makes one for a call that a turn encloses, which was retained for it. */
    private Nesting(@Nullable EnteredTurn retained) {
      this.retained = retained;
    }

    void release() {
      if (retained != null) {
        retained.release();
      }
    }
  }
}
