package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnStepper;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Owns one GPU's scheduler: whoever holds the seat's lock is its one owner, does a step, and
 * leaves.
 *
 * <p>The thread that has news takes the step itself, instead of sending it to a thread that owns
 * the scheduler: a hand-over then costs one wake-up, not two. The {@link SeatThread} steps only
 * when a deadline comes. What must not run under the lock (waking threads, callbacks) is collected
 * and done after leaving. Safe for use by several threads, virtual ones too.
 */
public final class GpuSeat {
  /** Waking a thread whose processor sleeps takes about as long. */
  private static final long MOST_SPIN_NS = 30_000;

  private static final Logger log = LoggerFactory.getLogger(GpuSeat.class);

  private final ReentrantLock lock = new ReentrantLock();
  private final NanoClock clock;
  private TurnStepper stepper = new Nothing();
  private final SeatThread thread;
  private final Queue<Runnable> afterwards = new ArrayDeque<>();
  private final List<Alarm> alarms = new ArrayList<>();
  private @Nullable Waiter firstReady;
  private @Nullable Waiter lastReady;
  private volatile long wakeAtNs = ShareScheduler.NEVER;

  /** How long tenants kept the GPU lately, as a moving average; guarded by the lock to write. */
  private volatile long typicalHoldNs = Long.MAX_VALUE;

  /** Written by who has got in, without the lock: it is a guess at what to expect, no more. */
  private volatile long holdStartNs;

  private final AtomicBoolean spins = new AtomicBoolean();

  /**
   * Makes a seat.
   *
   * @param clock the time
   * @param thread steps it when a deadline comes
   */
  public GpuSeat(NanoClock clock, SeatThread thread) {
    this.clock = clock;
    this.thread = thread;
    thread.add(this);
  }

  /** Something else than the scheduler's step that is due at a time. With the seat held. */
  interface Alarm {
    /** When it is due; {@link ShareScheduler#NEVER}: not now. Asked after each step. */
    long atNs();

    /** It is due. */
    void ring(long nowNs);
  }

  /** Adds an alarm. Called with the seat held. */
  void add(Alarm alarm) {
    alarms.add(alarm);
  }

  /** Removes an alarm. Called with the seat held. */
  void remove(Alarm alarm) {
    alarms.remove(alarm);
  }

  /** Before anybody decides about turns. */
  private static final class Nothing implements TurnStepper {
    @Override
    public int doWork(long nowNs) {
      return 0;
    }

    @Override
    public long nextWakeNs() {
      return ShareScheduler.NEVER;
    }
  }

  /** {@return the time} */
  public NanoClock clock() {
    return clock;
  }

  /**
   * Replaces what is stepped, and forgets the alarms of what was. Called with the seat held.
   *
   * @param stepper decides about turns from now on
   */
  public void follow(TurnStepper stepper) {
    alarms.clear();
    this.stepper = stepper;
  }

  long wakeAtNs() {
    return wakeAtNs;
  }

  /** Takes the seat; {@link #stepAndLeave} or {@link #leave} must follow. */
  public void take() {
    lock.lock();
  }

  /** Notes that a thread which waited for the GPU uses it from now on. */
  void holdBegins() {
    holdStartNs = clock.nanoTime();
  }

  /** Notes that a tenant has left the GPU. */
  void holdEnds() {
    long heldNs = clock.nanoTime() - holdStartNs;
    long before = typicalHoldNs == Long.MAX_VALUE ? heldNs : typicalHoldNs;
    typicalHoldNs = before + (heldNs - before) / 8;
  }

  /**
   * Waits for a waiter without parking, where tenants keep the GPU for so short a time that waking
   * a parked thread would take longer. One thread at a time does so.
   */
  void spin(Waiter waiter) {
    if (typicalHoldNs > MOST_SPIN_NS / 2 || !spins.compareAndSet(false, true)) {
      return;
    }
    long untilNs = clock.nanoTime() + MOST_SPIN_NS;
    while (!waiter.isSettled() && clock.nanoTime() < untilNs) {
      Thread.onSpinWait();
    }
    spins.set(false);
  }

  /** Notes a waiter that was settled: its thread is woken after the seat is left. */
  void wakeAfterwards(Waiter waiter) {
    if (lastReady == null) {
      firstReady = waiter;
    } else {
      lastReady.nextReady = waiter;
    }
    lastReady = waiter;
  }

  /** Notes what is to be done after the seat is left. */
  public void doAfterwards(Runnable action) {
    afterwards.add(action);
  }

  /** Steps the scheduler, leaves the seat, then wakes whom the step let in. */
  public void stepAndLeave() {
    try {
      long nowNs = clock.nanoTime();
      for (int i = 0; i < alarms.size(); i++) {
        if (alarms.get(i).atNs() <= nowNs) {
          alarms.get(i).ring(nowNs);
        }
      }
      stepper.doWork(nowNs);
    } catch (RuntimeException | Error e) { // whatever it is, the seat must be left
      log.error("a step of the scheduler failed; its GPU may be served late", e);
    }
    long nextNs = stepper.nextWakeNs();
    for (int i = 0; i < alarms.size(); i++) {
      nextNs = Math.min(nextNs, alarms.get(i).atNs());
    }
    wakeAtNs = nextNs;
    long wakeByNs = wakeAtNs;
    leave();
    thread.wakeBy(wakeByNs);
  }

  /** Leaves the seat, then does what was noted. */
  public void leave() {
    Waiter ready = firstReady;
    firstReady = null;
    lastReady = null;
    Runnable[] actions = afterwards.isEmpty() ? null : afterwards.toArray(new Runnable[0]);
    afterwards.clear();
    lock.unlock();
    while (ready != null) {
      Waiter next = ready.nextReady;
      ready.nextReady = null;
      LockSupport.unpark(ready.thread);
      ready = next;
    }
    if (actions != null) {
      for (Runnable action : actions) {
        perform(action);
      }
    }
  }

  private static void perform(Runnable action) {
    try {
      action.run();
    } catch (RuntimeException | Error e) {
      log.error("what follows a step of the scheduler failed", e);
    }
  }

  /** Takes one step, because a deadline has come. */
  void tick() {
    take();
    stepAndLeave();
  }
}
