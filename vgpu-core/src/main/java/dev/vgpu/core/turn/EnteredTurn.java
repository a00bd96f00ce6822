package dev.vgpu.core.turn;

import dev.vgpu.GpuTurn;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A turn returned by {@code enter}. It ends when its owner and all nested uses have closed it. */
final class EnteredTurn implements GpuTurn, ThreadTurns.HeldTurn {
  private final InProcessGate gate;
  private final long memoryBytes;

  /** The state of the thread that entered; kept reachable by this turn. */
  private final ThreadTurns turns;

  /** Kept reachable, so that the virtual GPU does not count as leaked while its turn is held. */
  @SuppressWarnings("UnusedVariable")
  private volatile @Nullable Object owner;

  private final AtomicInteger uses = new AtomicInteger(1);
  private final AtomicInteger closed = new AtomicInteger();

  EnteredTurn(InProcessGate gate, ThreadTurns turns, long memoryBytes, Object owner) {
    this.gate = gate;
    this.turns = turns;
    this.memoryBytes = memoryBytes;
    this.owner = owner;
  }

  @Override
  public boolean isEnded() {
    return uses.get() == 0;
  }

  boolean tryRetain() {
    for (int n = uses.get(); n > 0; n = uses.get()) {
      if (uses.compareAndSet(n, n + 1)) {
        return true;
      }
    }
    return false;
  }

  void release() {
    if (uses.decrementAndGet() == 0) {
      owner = null; // the thread that entered may refer to this turn for a long time
      try {
        turns.letGo(this);
        ThreadTurns.current().remove(this);
      } finally {
        gate.exit(memoryBytes);
      }
    }
  }

  @Override
  public boolean isYieldRequested() {
    return gate.isYieldRequested();
  }

  @Override
  public void close() {
    if (closed.compareAndSet(0, 1)) {
      release();
    }
  }

  /** A turn inside a turn or a call of the same virtual GPU. */
  static final class Nested implements GpuTurn, ThreadTurns.HeldTurn {
    private final InProcessGate gate;
    private final ThreadTurns.Nesting nesting;
    private final AtomicInteger closed = new AtomicInteger();

    Nested(InProcessGate gate, ThreadTurns.Nesting nesting) {
      this.gate = gate;
      this.nesting = nesting;
    }

    @Override
    public boolean isEnded() {
      return closed.get() != 0;
    }

    @Override
    public boolean isYieldRequested() {
      return gate.isYieldRequested();
    }

    @Override
    public void close() {
      if (closed.compareAndSet(0, 1)) {
        ThreadTurns.current().remove(this);
        nesting.release();
      }
    }
  }
}
