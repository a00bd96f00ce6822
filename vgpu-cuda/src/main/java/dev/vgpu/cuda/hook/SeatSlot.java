package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LEVEL2_STOPPED;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SLOT_SHIFT;

import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.process.ProcessLife;
import org.jspecify.annotations.Nullable;

/**
 * What the seat knows by itself of one process of a lease. What the process says in the report page
 * is read anew each time and believed as far as it can be true. Guarded by the lease's lock.
 */
final class SeatSlot {
  /**
   * A process that works and has not been seen alive for so long may have been stopped: the kernel
   * is asked. A hook at work shows that it lives every millisecond.
   */
  private static final long QUIET_NS = 3_000_000;

  /** After so long it counts as stopped whatever the kernel says of it. */
  private static final long LOST_NS = 60_000_000;

  /** If the seat itself has not looked for so long, it cannot tell. */
  private static final long BLIND_NS = 20_000_000;

  /** How long a process of another namespace may stay away after the seat was taken over. */
  private static final long RETURN_NS = 2_000_000_000;

  /** If the seat itself has not looked for so long, it was stopped. */
  private static final long ABSENT_NS = 1_000_000_000;

  /** More threads than a process can have. */
  private static final int MOST_THREADS = 1 << 16;

  /** More batches of work than a process can have in flight: its streams, each with a full ring. */
  private static final int MOST_BATCHES = 1 << 17;

  /** More often than threads can be held back between two looks at them. */
  private static final long MOST_YIELDS = 1_000_000;

  /** Clocks that are tied together differ a little: so much too much is cut off without a word. */
  private static final long TOLERATED_NS = 20_000_000;

  /** What is wrong with its reports. */
  final Suspicions suspicions;

  final int number;
  final long pid;
  final long startTime;
  final long pidNamespace;

  /** Whether the seat can see it in {@code /proc}. */
  final boolean visible;

  /** Its id in the seat's namespace; 0: it was not looked for, or not found. */
  volatile long pidHere;

  final SlotMapping mapping;

  /** It was seen to have the lease's own page. Set without the lease's lock. */
  volatile boolean genuine;

  /** Its socket; null while it has none. */
  @Nullable HookConnection connection;

  /** Its bit in the express lane, or {@link LeaseExpress#NO_BIT}. */
  int expressBit = LeaseExpress.NO_BIT;

  /** Since when it has none. */
  long disconnectedNs;

  /** When {@code /proc} was last asked about it. */
  long checkedNs;

  private final SlotReadings readings;
  private long creditedNs;
  private long readNs;
  private boolean worked;
  private boolean stopped;
  private boolean toldIdleness = true;
  private boolean wentOn;
  private long lastDone;
  private long yieldsSeen;
  private long beat;
  private long beatSeenNs;
  private long stopCheckedNs;
  private long observedNs;

  SeatSlot(
      SlotReadings readings,
      int number,
      long pid,
      long startTime,
      long pidNamespace,
      boolean visible,
      long nowNs) {
    this.readings = readings;
    this.number = number;
    this.pid = pid;
    this.suspicions = new Suspicions(pid);
    this.mapping = new SlotMapping(pid);
    this.startTime = startTime;
    this.pidNamespace = pidNamespace;
    this.visible = visible;
    this.pidHere = visible ? pid : 0;
    this.disconnectedNs = nowNs;
    this.checkedNs = nowNs;
    this.observedNs = nowNs;
  }

  boolean isProcess(HookMessage hello) {
    return hello.pid() == pid
        && hello.startTime() == startTime
        && hello.pidNamespace() == pidNamespace;
  }

  boolean isOfTheProcessOf(SeatSlot other) {
    return pid == other.pid && startTime == other.startTime && pidNamespace == other.pidNamespace;
  }

  /** Whether it should have come back. Only time counts in which the seat could hear it. */
  boolean isOverdue(long nowNs) {
    long sinceNs = nowNs - checkedNs;
    checkedNs = nowNs;
    if (sinceNs > ABSENT_NS) {
      disconnectedNs += sinceNs;
    }
    return nowNs - disconnectedNs > RETURN_NS;
  }

  /** Takes in what was just read. */
  void refreshed() {
    if (readings.hasWork(number)) {
      toldIdleness = false;
    }
    check(Slot.BUSY, MOST_BATCHES, "pieces of work in flight");
    check(Slot.WAITING, MOST_THREADS, "threads waiting");
    long done = readings.longAt(number, Slot.LAUNCHES) + readings.longAt(number, Slot.GPU_NS);
    wentOn |= done != lastDone;
    lastDone = done;
  }

  private void check(int field, int most, String what) {
    int count = readings.intAt(number, field);
    if (count < 0 || count > most) {
      suspicions.add(Suspicions.Kind.ABSURD_COUNT, "reports " + count + " " + what);
    }
  }

  /** Whether it has done work since this was last asked. */
  boolean wentOn() {
    boolean before = wentOn;
    wentOn = false;
    return before;
  }

  /** Whether it has told that it has no work, since it last was seen to have some. */
  boolean toldIdleness() {
    return toldIdleness;
  }

  /** Whether something of it is on the GPU; what is stopped inside a kernel is not. */
  boolean isBusy(boolean finishing) {
    return !stopped
        && readings.isBusy(number)
        && (finishing || readings.intAt(number, Slot.LEVEL2) != LEVEL2_STOPPED);
  }

  /** Whether something of it is on the GPU, or waits to be. */
  boolean hasWork() {
    return !stopped && readings.hasWork(number);
  }

  /** It has told that it has work, or that it has none; so it is not stopped. */
  void heard(long nowNs, boolean wants) {
    stopped = false;
    toldIdleness = !wants;
    beatSeenNs = nowNs;
  }

  /**
   * Looks whether a process that works is still alive. One that was stopped by a signal holds its
   * work back, and must not hold others with it.
   */
  void observe(long nowNs, ProcessLife life) {
    boolean works = readings.hasWork(number);
    long seen = readings.longAt(number, Slot.HEARTBEAT_NS);
    boolean fresh = !works || !worked || seen != beat;
    worked = works;
    beat = seen;
    if (fresh) {
      stopped = false;
      beatSeenNs = nowNs;
    } else if (!stopped && nowNs - beatSeenNs > QUIET_NS) {
      // By a time of its own: whoever looks for the dead meanwhile does not ask for the stopped.
      if (visible && nowNs - stopCheckedNs > QUIET_NS / 2) {
        stopCheckedNs = nowNs;
        stopped = life.state(pid, startTime) != ProcessLife.State.ALIVE;
      }
      if (nowNs - observedNs > BLIND_NS) {
        beatSeenNs = nowNs;
      } else if (nowNs - beatSeenNs > LOST_NS) {
        stopped = true;
        suspicions.add(
            Suspicions.Kind.SILENT,
            "reports work on the GPU and has shown no life for "
                + LOST_NS / 1_000_000
                + " ms: it counts as stopped, and holds nobody up");
      }
    }
    observedNs = nowNs;
  }

  /** Takes what the page says now as said before: for a slot that an earlier seat has credited. */
  long adoptGpuTime() {
    readNs = Math.max(0, readings.longAt(number, Slot.GPU_NS));
    creditedNs = readNs;
    yieldsSeen = Math.max(0, readings.longAt(number, Slot.YIELDS));
    return creditedNs;
  }

  /**
   * {@return the GPU time that is new since the last reading}
   *
   * @param limitNs what it can be at most
   */
  long newGpuTimeNs(long limitNs) {
    long now = readings.longAt(number, Slot.GPU_NS);
    long before = readNs;
    long rise = now - before;
    readNs = now;
    if (rise < 0 || now < 0) {
      suspicions.add(
          Suspicions.Kind.BACKWARDS,
          "reports " + now + " ns of GPU time after " + before + " ns: nothing is credited");
      return 0;
    }
    long credited = Math.min(rise, Math.max(0, limitNs));
    if (rise - credited > TOLERATED_NS) {
      suspicions.add(
          Suspicions.Kind.TOO_MUCH,
          "reports "
              + rise
              + " ns more GPU time, when at most "
              + credited
              + " ns have passed: so much is credited");
    }
    creditedNs += credited;
    return credited;
  }

  /** The GPU time that it was credited with. */
  long creditedNs() {
    return creditedNs;
  }

  /** How often, since this was last asked, the express lane has held it back, as it says. */
  long newYields() {
    long now = Math.max(0, readings.longAt(number, Slot.YIELDS));
    long more = Math.min(Math.max(0, now - yieldsSeen), MOST_YIELDS);
    yieldsSeen = now;
    return more;
  }

  /** Which bit it was that held it back last; no bit of the lane's if it says what cannot be. */
  int yieldedTo() {
    return readings.intAt(number, Slot.YIELDED_TO) - 1;
  }

  /** What it says that it does on the express lane. */
  int express() {
    return readings.intAt(number, Slot.EXPRESS);
  }

  /** Whether it has done nothing yet, and so had no need to join the express lane. */
  boolean isFresh() {
    return launches() == 0 && !readings.hasWork(number);
  }

  boolean isStopped() {
    return stopped;
  }

  /** Whether it holds memory on the GPU, be it a context's, or has ever worked there. */
  boolean holdsMemory() {
    return readings.longAt(number, Slot.MEMORY_OWN) >>> MEMORY_SLOT_SHIFT != 0 || !isFresh();
  }

  int waiting() {
    return Math.max(0, Math.min(MOST_THREADS, readings.intAt(number, Slot.WAITING)));
  }

  long denied() {
    return Math.max(0, readings.longAt(number, Slot.DENIED));
  }

  long launches() {
    return Math.max(0, readings.longAt(number, Slot.LAUNCHES));
  }

  long copyNs() {
    return Math.max(0, readings.longAt(number, Slot.COPY_NS));
  }

  long passedThrough() {
    return Math.max(0, readings.longAt(number, Slot.PASSED_THROUGH));
  }
}
