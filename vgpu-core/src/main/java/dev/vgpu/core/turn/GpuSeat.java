package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
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
 * Owns one GPU's scheduler. The thread that holds the seat's lock is the scheduler's single owner:
 * it takes the seat, performs a step, and leaves.
 *
 * <p>A thread with news performs the step itself, instead of passing it to a scheduler thread, so a
 * hand-over costs one wake-up, not two. The {@link SeatThread} steps only at deadlines. Actions
 * that must not run under the lock (waking threads, callbacks) are collected and run after leaving.
 * Safe for use by several threads, including virtual threads.
 */
public final class GpuSeat {
  /** About as long as it takes to wake a thread on a sleeping processor. */
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
  private volatile long wakeAtNs = TurnStepper.NEVER;

  /**
   * The recent time for which tenants kept the GPU, as a moving average; the lock guards writes.
   */
  private volatile long typicalHoldNs = Long.MAX_VALUE;

  /** Written by the entering thread without the lock: it is only used for an estimate. */
  private volatile long holdStartNs;

  private final AtomicBoolean spins = new AtomicBoolean();

  /**
   * Creates a seat.
   *
   * @param clock the time source
   * @param thread steps the seat at deadlines
   */
  public GpuSeat(NanoClock clock, SeatThread thread) {
    this.clock = clock;
    this.thread = thread;
    thread.add(this);
  }

  /** An action other than the scheduler's step that is due at a time. Called with the seat held. */
  interface Alarm {
    /** When it is due; {@link TurnStepper#NEVER} if it is not. Read after each step. */
    long atNs();

    /** Called when it is due. */
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

  /** The stepper until one is set that decides about turns. */
  private static final class Nothing implements TurnStepper {
    @Override
    public int doWork(long nowNs) {
      return 0;
    }

    @Override
    public long nextWakeNs() {
      return TurnStepper.NEVER;
    }
  }

  /** {@return the time source} */
  public NanoClock clock() {
    return clock;
  }

  /**
   * Replaces what is stepped, and removes all alarms. Called with the seat held.
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

  /** {@return whether a thread has the seat at this moment} */
  public boolean isTaken() {
    return lock.isLocked();
  }

  /** Records that a thread that waited for the GPU starts to use it. */
  void holdBegins() {
    holdStartNs = clock.nanoTime();
  }

  /** Records that a tenant has left the GPU. */
  void holdEnds() {
    long heldNs = clock.nanoTime() - holdStartNs;
    long before = typicalHoldNs == Long.MAX_VALUE ? heldNs : typicalHoldNs;
    typicalHoldNs = before + (heldNs - before) / 8;
  }

  /**
   * Busy-waits for a waiter, if tenants keep the GPU for less time than waking a parked thread
   * takes. Only one thread at a time does so.
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

  /** Adds a settled waiter, whose thread is woken after the seat is left. */
  void wakeAfterwards(Waiter waiter) {
    if (lastReady == null) {
      firstReady = waiter;
    } else {
      lastReady.nextReady = waiter;
    }
    lastReady = waiter;
  }

  /** Adds an action to run after the seat is left. */
  public void doAfterwards(Runnable action) {
    afterwards.add(action);
  }

  /** Steps the scheduler, leaves the seat, then wakes the threads that the step admitted. */
  public void stepAndLeave() {
    long wakeByNs;
    try {
      step();
      wakeByNs = nextWakeNs();
      wakeAtNs = wakeByNs;
    } finally {
      leave(); // even if there is no stack left to log a failure
    }
    thread.wakeBy(wakeByNs);
  }

  private void step() {
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
  }

  private long nextWakeNs() {
    long nextNs = stepper.nextWakeNs();
    for (int i = 0; i < alarms.size(); i++) {
      nextNs = Math.min(nextNs, alarms.get(i).atNs());
    }
    return nextNs;
  }

  /** Leaves the seat, then runs the collected actions. */
  public void leave() {
    Waiter ready = firstReady;
    firstReady = null;
    lastReady = null;
    Runnable[] actions = null;
    try {
      if (!afterwards.isEmpty()) {
        actions = afterwards.toArray(new Runnable[0]);
        afterwards.clear();
      }
    } finally {
      lock.unlock();
    }
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

  /** Performs one step at a deadline. */
  void tick() {
    take();
    stepAndLeave();
  }
}
