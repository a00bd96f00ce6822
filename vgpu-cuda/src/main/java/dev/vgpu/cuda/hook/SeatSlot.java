package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LEVEL2_STOPPED;

import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.MemoryLedger;
import dev.vgpu.cuda.process.ProcessLife;
import org.jspecify.annotations.Nullable;

/**
 * The seat's own knowledge of one process of a lease. The process's report is read again each time,
 * and believed only as far as it can be true. Guarded by the lease's lock.
 */
final class SeatSlot {
  /**
   * A busy process without a heartbeat for this long may have been stopped, so the kernel is asked.
   * A hook with work renews its heartbeat every millisecond.
   */
  private static final long QUIET_NS = 3_000_000;

  /** The same while nothing of it runs on the GPU. It then renews its heartbeat every 8 ms. */
  private static final long HELD_QUIET_NS = 20_000_000;

  /** A busy process without a heartbeat for this long counts as stopped in any case. */
  private static final long LOST_NS = 60_000_000;

  /** If the seat itself has not looked for this long, it cannot judge. */
  private static final long BLIND_NS = 20_000_000;

  /**
   * How long a process whose mappings tell nothing may take to reconnect, after a take-over too.
   */
  private static final long RETURN_NS = 2_000_000_000;

  /** If the seat itself has not looked for this long, it was stopped. */
  private static final long ABSENT_NS = 1_000_000_000;

  /** More threads than a process can have. */
  private static final int MOST_THREADS = 1 << 16;

  /** More batches than a process can have in flight: all its streams, each with a full ring. */
  private static final int MOST_BATCHES = 1 << 17;

  /** More often than threads can be held back between two looks. */
  private static final long MOST_YIELDS = 1_000_000;

  /** Coupled clocks differ slightly: an excess up to this is cut off silently. */
  private static final long TOLERATED_NS = 20_000_000;

  /** Implausible reports of this process. */
  final Suspicions suspicions;

  final int number;
  final long pid;
  final long startTime;
  final long pidNamespace;

  /** Whether the seat sees it in {@code /proc}. */
  final boolean visible;

  /** Its pid in the seat's namespace; 0: not looked for, or not found. */
  volatile long pidHere;

  final SlotMapping mapping;

  /** Whether it was seen to map the lease's own page. Set without the lease's lock. */
  volatile boolean genuine;

  /** Its socket; null if it has none. */
  @Nullable Socket connection;

  /** Its bit in the express lane, or {@link LeaseExpress#NO_BIT}. */
  int expressBit = LeaseExpress.NO_BIT;

  /** Whether it was sent a WELCOME over that socket, or over the one that it lost. */
  boolean welcomed;

  /** When it lost its socket. */
  long disconnectedNs;

  /** When {@code /proc} was last read for it. */
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

  /** The socket of a process, as its slot and its lease see it. */
  interface Socket {
    /** Unlinks it from the slot. */
    void detached();

    /** Closes it soon, on the server's thread. */
    void close();
  }

  boolean isProcess(HookMessage hello) {
    return hello.pid() == pid
        && hello.startTime() == startTime
        && hello.pidNamespace() == pidNamespace;
  }

  boolean isOfTheProcessOf(SeatSlot other) {
    return pid == other.pid && startTime == other.startTime && pidNamespace == other.pidNamespace;
  }

  /** {@return whether it should have reconnected} Time when the seat was stopped does not count. */
  boolean isOverdue(long nowNs) {
    long sinceNs = nowNs - checkedNs;
    checkedNs = nowNs;
    if (sinceNs > ABSENT_NS) {
      disconnectedNs += sinceNs;
    }
    return nowNs - disconnectedNs > RETURN_NS;
  }

  /** Evaluates the readings that were just refreshed. */
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

  /** {@return whether it has done work since the last call} */
  boolean wentOn() {
    boolean before = wentOn;
    wentOn = false;
    return before;
  }

  /** {@return whether it has announced idleness since it last had work} */
  boolean toldIdleness() {
    return toldIdleness;
  }

  /** {@return whether it has work on the GPU; work stopped inside a kernel counts if finishing} */
  boolean isBusy(boolean finishing) {
    return !stopped && readings.isBusy(number) && (finishing || !isStoppedInKernel());
  }

  private boolean isStoppedInKernel() {
    return readings.intAt(number, Slot.LEVEL2) == LEVEL2_STOPPED;
  }

  /** {@return whether it has work on the GPU, or threads that wait} */
  boolean hasWork() {
    return !stopped && readings.hasWork(number);
  }

  /** Notes its message that it has work, or none. So it is not stopped. */
  void heard(long nowNs, boolean wants) {
    stopped = false;
    toldIdleness = !wants;
    beatSeenNs = nowNs;
  }

  /**
   * Checks whether a busy process is still alive. A process that was stopped by a signal holds its
   * work back, and must not hold up others.
   *
   * @param open whether the gate is open; while it is shut, a process that waits holds nobody up
   */
  void observe(long nowNs, boolean open, ProcessLife life) {
    boolean held = readings.isBusy(number) ? isStoppedInKernel() : !open;
    long quietNs = held ? HELD_QUIET_NS : QUIET_NS;
    boolean works = readings.hasWork(number);
    long seen = readings.longAt(number, Slot.HEARTBEAT_NS);
    boolean fresh = !works || !worked || seen != beat;
    worked = works;
    beat = seen;
    if (fresh) {
      stopped = false;
      beatSeenNs = nowNs;
    } else if (!stopped && nowNs - beatSeenNs > quietNs) {
      // Has its own timer, so that checks for dead processes do not delay this one.
      if (visible && nowNs - stopCheckedNs > quietNs / 2) {
        stopCheckedNs = nowNs;
        stopped = life.state(pid, startTime) != ProcessLife.State.ALIVE;
      }
      if (nowNs - observedNs > BLIND_NS) {
        beatSeenNs = nowNs;
      } else if (nowNs - beatSeenNs > LOST_NS) {
        stopped = true;
        suspicions.add(
            Suspicions.Kind.SILENT,
            "reports work on the GPU and has sent no heartbeat for "
                + LOST_NS / 1_000_000
                + " ms: counted as stopped, it no longer delays others");
      }
    }
    observedNs = nowNs;
  }

  /** Starts from the page's current values, which an earlier seat has credited. */
  long adoptGpuTime() {
    readNs = Math.max(0, readings.longAt(number, Slot.GPU_NS));
    creditedNs = readNs;
    yieldsSeen = Math.max(0, readings.longAt(number, Slot.YIELDS));
    return creditedNs;
  }

  /**
   * {@return the GPU time since the last reading}
   *
   * @param limitNs the most that can be true
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
              + " ns have passed: only that much is credited");
    }
    creditedNs += credited;
    return credited;
  }

  /** {@return the GPU time that was credited to it} */
  long creditedNs() {
    return creditedNs;
  }

  /** {@return how often the express lane held it back since the last call, as it reports} */
  long newYields() {
    long now = Math.max(0, readings.longAt(number, Slot.YIELDS));
    long more = Math.min(Math.max(0, now - yieldsSeen), MOST_YIELDS);
    yieldsSeen = now;
    return more;
  }

  /** {@return the bit that held it back last; may be out of range, as it is untrusted} */
  int yieldedTo() {
    return readings.intAt(number, Slot.YIELDED_TO) - 1;
  }

  /** {@return its role on the express lane, as it reports it: {@code EXPRESS_}} */
  int express() {
    return readings.intAt(number, Slot.EXPRESS);
  }

  /** {@return whether it has done no work yet, and so need not have joined the express lane} */
  boolean isFresh() {
    return launches() == 0 && !readings.hasWork(number);
  }

  boolean isStopped() {
    return stopped;
  }

  /** {@return whether it holds GPU memory, a context included, or has ever worked there} */
  boolean holdsMemory() {
    return MemoryLedger.holds(field -> readings.longAt(number, field)) || !isFresh();
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
