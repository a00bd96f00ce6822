package dev.vgpu.core.turn;

import dev.vgpu.spi.ProcessAttachment;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The gates that the current thread is inside, so that a call within a call is admitted. Confined
 * to its thread. Refers to a gate only while the thread is inside it, so nothing outlives a closed
 * virtual GPU.
 *
 * <p>A thread that is inside no gate has no strong reference to a class of vgpu. It may be a
 * server's thread, which outlives the class loader of this class. The thread refers to this object
 * weakly. While the thread is inside a gate, its stack refers to this object, or a turn that {@link
 * #kept} holds does.
 */
final class ThreadTurns {
  private static final ThreadLocal<@Nullable WeakReference<ThreadTurns>> CURRENT =
      new ThreadLocal<>();

  /** The objects that the thread itself holds: a set from the JDK, which any thread may change. */
  private static final ThreadLocal<Set<Object>> KEPT =
      ThreadLocal.withInitial(ConcurrentHashMap::newKeySet);

  /** The thread's open turns and, while the thread is bound, this object. */
  private final Set<Object> kept = KEPT.get();

  private @Nullable InProcessGate[] gates = new @Nullable InProcessGate[4];

  /** For each gate, the turn returned by {@code enter}, or null for a call. */
  private @Nullable HeldTurn[] turns = new @Nullable HeldTurn[4];

  private int count;

  /** What the thread is bound to in the backend; null if nothing. */
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

  /** Keeps a turn, and through it this object, reachable until {@link #letGo}. */
  void keep(EnteredTurn turn) {
    boolean ignored = kept.add(turn);
  }

  /** Releases a turn that has ended. Called on any thread. */
  void letGo(EnteredTurn turn) {
    boolean ignored = kept.remove(turn);
  }

  /**
   * How a call of the gate is nested in the thread's gates. If a turn from {@code enter} encloses
   * it, that turn is retained, so that another thread that closes the turn does not end it under
   * the nested call.
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
        } // otherwise it is nested itself, in a turn further out
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
              + " contains a call of "
              + gate.id()
              + " on the same GPU, which would deadlock");
    }
    return Nesting.OUTERMOST;
  }

  /**
   * Records that the thread is inside a gate. If this JVM is under that virtual GPU, binds the
   * thread to it.
   *
   * @throws IllegalStateException if the thread cannot be bound; nothing was recorded then
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

  /** Binds the thread to the innermost virtual GPU that it is still inside. */
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

  /** Removes the innermost call of the gate, and turns within it that were not closed. */
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

  /** Removes a turn, if it is this thread's. */
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

  /** A turn returned by {@code enter}. */
  interface HeldTurn {
    /** Whether it was closed. */
    boolean isEnded();
  }

  /** How a call is nested in the gates that its thread is inside. */
  static final class Nesting {
    /** No gate of the thread encloses it. */
    static final Nesting OUTERMOST = new Nesting(null);

    /** A call of the same gate encloses it. */
    static final Nesting IN_CALL = new Nesting(null);

    private final @Nullable EnteredTurn retained;

    /** Creates one for a call inside a turn that was retained for it. */
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
