package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * How many calls are inside a gate, whether it is open, and the time during which any ran.
 *
 * <p>One word holds all of this, so that entering and leaving cost one compare-and-swap each:
 *
 * <pre>
 *   bits  0..15  inside:    calls that were admitted and have not left
 *   bits 16..31  running:   those of them that have begun (a call that another thread admitted
 *                           begins when its own thread is awake)
 *   bit  32      open:      calls may enter
 *   bit  33      queued:    a call waits in front, so no call may enter past it
 *   bit  34      contended: another tenant waits, so the last call that leaves must report it
 *   bits 36..63  period:    counts the times that running went from 0 to 1
 * </pre>
 *
 * <p>Busy time is the union of the running calls. The thread that takes running from 0 to 1 begins
 * a period: it writes {@code periodStartNs}, then {@code startedPeriod} with release order. The
 * thread that takes running from 1 to 0 has read the start before, and adds the period's length
 * afterwards. A reader in between trusts the start only if {@code startedPeriod} (acquire) equals
 * the period in the word. A reading briefly misses a period whose length is not added yet, or whose
 * start is not written yet.
 */
final class GateCount {
  private static final long ONE_INSIDE = 1L;
  private static final long INSIDE = 0xFFFFL;
  private static final long ONE_RUNNING = 1L << 16;
  private static final long RUNNING = 0xFFFFL << 16;
  private static final long OPEN = 1L << 32;
  private static final long QUEUED = 1L << 33;
  private static final long CONTENDED = 1L << 34;
  private static final int PERIOD_SHIFT = 36;
  private static final long ONE_PERIOD = 1L << PERIOD_SHIFT;

  private static final long PROGRESS = RUNNING | -ONE_PERIOD;

  private static final VarHandle WORD;
  private static final VarHandle STARTED_PERIOD;
  private static final VarHandle BUSY_NS;
  private static final VarHandle CALLS;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      WORD = lookup.findVarHandle(GateCount.class, "word", long.class);
      STARTED_PERIOD = lookup.findVarHandle(GateCount.class, "startedPeriod", long.class);
      BUSY_NS = lookup.findVarHandle(GateCount.class, "busyNs", long.class);
      CALLS = lookup.findVarHandle(GateCount.class, "calls", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final NanoClock clock;
  private volatile int bound;
  private volatile long word;
  private long periodStartNs;

  @SuppressWarnings("UnusedVariable") // read through STARTED_PERIOD
  private volatile long startedPeriod = -1;

  private volatile long busyNs;
  private volatile long calls;

  GateCount(NanoClock clock, int bound) {
    this.clock = clock;
    this.bound = bound;
  }

  void bound(int bound) {
    this.bound = bound;
  }

  boolean isOpen() {
    return (word & OPEN) != 0;
  }

  int inside() {
    return (int) (word & INSIDE);
  }

  /** Enters and begins, if the gate is open, no call waits in front, and the bound allows it. */
  boolean tryEnter() {
    for (; ; ) {
      long old = word;
      if ((old & (OPEN | QUEUED)) != OPEN || (old & INSIDE) >= bound) {
        return false;
      }
      if (moveIn(old, ONE_INSIDE + ONE_RUNNING)) {
        return true;
      }
    }
  }

  /**
   * Admits a waiting call, if the gate is open and the bound allows it; that call's thread begins
   * it.
   */
  boolean tryAdmit() {
    for (; ; ) {
      long old = word;
      if ((old & OPEN) == 0 || (old & INSIDE) >= bound) {
        return false;
      }
      if (WORD.compareAndSet(this, old, old + ONE_INSIDE)) {
        return true;
      }
    }
  }

  /** Begins a call that was admitted. */
  void begin() {
    while (!moveIn(word, ONE_RUNNING)) {
      Thread.onSpinWait();
    }
  }

  private boolean moveIn(long old, long by) {
    boolean first = (old & RUNNING) == 0;
    long now = old + by + (first ? ONE_PERIOD : 0);
    if (!WORD.compareAndSet(this, old, now)) {
      return false;
    }
    if (first) {
      periodStartNs = clock.nanoTime();
      STARTED_PERIOD.setRelease(this, now >>> PERIOD_SHIFT); // pairs with the acquire in busyNs
    }
    return true;
  }

  /**
   * Leaves.
   *
   * @return whether the gate must act: a call waits in front, or the gate has become idle and is
   *     shut or contended
   */
  boolean exit() {
    for (; ; ) {
      long old = word;
      boolean last = (old & RUNNING) == ONE_RUNNING;
      // Read before the word changes: afterwards another thread may begin the next period.
      long lengthNs = last ? clock.nanoTime() - periodStartNs : 0;
      long now = old - ONE_INSIDE - ONE_RUNNING;
      if (WORD.compareAndSet(this, old, now)) {
        if (last) {
          long ignored = (long) BUSY_NS.getAndAdd(this, lengthNs);
        }
        long ignored = (long) CALLS.getAndAdd(this, 1L);
        boolean idle = (now & INSIDE) == 0;
        return (now & QUEUED) != 0 || (idle && (now & (OPEN | CONTENDED)) != OPEN);
      }
    }
  }

  void open() {
    set(OPEN, true);
  }

  /** Admits no more calls. Returns whether none is inside. */
  boolean shut() {
    return (set(OPEN, false) & INSIDE) == 0;
  }

  void setQueued(boolean queued) {
    set(QUEUED, queued);
  }

  void setContended(boolean contended) {
    set(CONTENDED, contended);
  }

  private long set(long flag, boolean on) {
    for (; ; ) {
      long old = word;
      long now = on ? old | flag : old & ~flag;
      if (old == now || WORD.compareAndSet(this, old, now)) {
        return now;
      }
    }
  }

  /** How many calls have ended or are running. */
  long calls() {
    return calls + ((word & RUNNING) >>> 16);
  }

  /** The time during which any call ran, including the running ones. */
  long busyNs(long nowNs) {
    for (int i = 0; i < 8; i++) {
      long before = word;
      long sumNs = busyNs;
      long startedIn = (long) STARTED_PERIOD.getAcquire(this);
      long startNs = periodStartNs;
      VarHandle.acquireFence();
      if ((word & PROGRESS) == (before & PROGRESS)) {
        boolean runs = (before & RUNNING) != 0 && startedIn == before >>> PERIOD_SHIFT;
        return runs ? sumNs + Math.max(0, nowNs - startNs) : sumNs;
      }
    }
    return busyNs;
  }
}
