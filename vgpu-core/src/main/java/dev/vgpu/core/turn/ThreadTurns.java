package dev.vgpu.core.turn;

import dev.vgpu.spi.ProcessAttachment;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The gates that the current thread is inside of, so that a call within a call is let through.
 * Confined to its thread. Holds a gate only while the thread is inside, so nothing outlives a
 * closed virtual GPU.
 *
 * <p>A thread that is inside of nothing refers to no class of ours: it may be a server's, which
 * outlives the class loader that this class came from. It refers to this object weakly; while it is
 * inside, a frame of its stack does, or a turn that {@link #kept} holds.
 */
final class ThreadTurns {
  private static final ThreadLocal<@Nullable WeakReference<ThreadTurns>> CURRENT =
      new ThreadLocal<>();

  /** What the thread itself refers to; a set of the JDK's, which any thread may change. */
  private static final ThreadLocal<Set<Object>> KEPT =
      ThreadLocal.withInitial(ConcurrentHashMap::newKeySet);

  /** The turns of this thread that are not ended, and this while the thread is bound. */
  private final Set<Object> kept = KEPT.get();

  private @Nullable InProcessGate[] gates = new @Nullable InProcessGate[4];

  /** Beside each gate the turn that {@code enter} gave out, or null for a call. */
  private @Nullable HeldTurn[] turns = new @Nullable HeldTurn[4];

  private int count;

  /** What the thread is bound to, in the backend; null: nothing. */
  private @Nullable ProcessAttachment bound;

  static ThreadTurns current() {
    WeakReference<ThreadTurns> last = CURRENT.get();
    ThreadTurns turns = last == null ? null : last.get();
    if (turns == null) {
      turns = new ThreadTurns();
      CURRENT.set(new WeakReference<>(turns));
    }
    return turns;
  }

  /** Holds a turn until {@link #letGo}, and by it this. */
  void keep(EnteredTurn turn) {
    boolean ignored = kept.add(turn);
  }

  /** The turn has ended. By any thread. */
  void letGo(EnteredTurn turn) {
    boolean ignored = kept.remove(turn);
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
      HeldTurn turn = turns[i];
      InProcessGate enclosing = gates[i];
      if (turn != null && turn.isEnded()) {
        removeAt(i);
      } else if (enclosing == gate) {
        if (turn == null) {
          return Nesting.IN_CALL;
        }
        if (turn instanceof EnteredTurn entered) {
          if (entered.tryRetain()) {
            return new Nesting(entered);
          }
          removeAt(i);
        } // else it is itself within another, further out
      } else if (enclosing != null
          && enclosing.attachment() == null
          && enclosing.sharesGpuWith(gate)) {
        other = enclosing;
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

  /**
   * Notes that the thread is inside a gate, and binds it to the virtual GPU where this JVM is under
   * that.
   *
   * @throws IllegalStateException if the thread cannot be bound; then nothing was noted
   */
  void push(InProcessGate gate, @Nullable HeldTurn turn) {
    ProcessAttachment attachment = gate.attachment();
    if (attachment != null) {
      bind(attachment, gate);
    }
    if (count == gates.length) {
      gates = Arrays.copyOf(gates, 2 * count);
      turns = Arrays.copyOf(turns, 2 * count);
    }
    gates[count] = gate;
    turns[count] = turn;
    count++;
  }

  private void bind(ProcessAttachment attachment, InProcessGate gate) {
    if (VirtualThreads.isVirtual(Thread.currentThread())) {
      throw new IllegalStateException(
          "a virtual thread cannot be bound to a virtual GPU, it would leave the binding to"
              + " whatever thread its carrier runs next: use submit(), or a platform thread: id="
              + gate.id());
    }
    if (attachment != bound) {
      attachment.bindThread();
      bound = attachment;
      boolean ignored = kept.add(this);
    }
  }

  /** Binds the thread to the innermost that it is still inside of. */
  private void rebind() {
    ProcessAttachment last = bound;
    if (last == null) {
      return;
    }
    ProcessAttachment inner = null;
    for (int i = count - 1; i >= 0 && inner == null; i--) {
      InProcessGate gate = gates[i];
      HeldTurn turn = turns[i];
      inner = gate == null || (turn != null && turn.isEnded()) ? null : gate.attachment();
    }
    if (inner == last) {
      return;
    }
    bound = inner;
    if (inner == null) {
      boolean ignored = kept.remove(this);
      last.unbindThread();
    } else {
      inner.bindThread();
    }
  }

  /** Takes out the innermost call of the gate, with turns within it that were not closed. */
  void popCall(InProcessGate gate) {
    for (int i = count - 1; i >= 0; i--) {
      if (gates[i] == gate) {
        boolean call = turns[i] == null;
        if (call || turns[i] instanceof EnteredTurn.Nested) {
          removeAt(i);
        }
        if (call) {
          break;
        }
      }
    }
    rebind();
  }

  /** Takes out a turn, if it is this thread's. */
  void remove(HeldTurn turn) {
    for (int i = count - 1; i >= 0; i--) {
      if (turns[i] == turn) {
        removeAt(i);
        break;
      }
    }
    rebind();
  }

  private void removeAt(int i) {
    count--;
    System.arraycopy(gates, i + 1, gates, i, count - i);
    System.arraycopy(turns, i + 1, turns, i, count - i);
    gates[count] = null;
    turns[count] = null;
  }

  /** A turn that was given out. */
  interface HeldTurn {
    /** Whether it was closed. */
    boolean isEnded();
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
