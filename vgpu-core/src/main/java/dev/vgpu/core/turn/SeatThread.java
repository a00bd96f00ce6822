package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.ThreadEnd;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Steps the schedulers of a node's GPUs at deadlines: the end of a turn, a linger or a cap. One
 * daemon thread for all GPUs; it sleeps while nothing is due.
 */
public final class SeatThread implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatThread.class);
  private static final long AWAKE = Long.MIN_VALUE;

  private final NanoClock clock;
  private final List<GpuSeat> seats = new CopyOnWriteArrayList<>();
  private final Thread thread;
  private volatile long sleepsUntilNs = AWAKE;
  private volatile boolean closed;

  /**
   * Starts the thread.
   *
   * @param clock the time source
   */
  public SeatThread(NanoClock clock) {
    this.clock = clock;
    this.thread = new Thread(this::loop, "vgpu-seat");
    thread.setDaemon(true);
    thread.start();
  }

  void add(GpuSeat seat) {
    seats.add(seat);
  }

  /** Ensures that the thread is awake at a time. */
  void wakeBy(long atNs) {
    // The seat publishes its deadline before this read. The thread publishes its sleep before it
    // reads the deadlines. So either the thread sees the deadline, or this method sees the sleep.
    if (atNs < sleepsUntilNs) {
      LockSupport.unpark(thread);
    }
  }

  private void loop() {
    while (!closed) {
      try {
        step();
      } catch (RuntimeException | Error e) {
        // The turns on all GPUs depend on this thread, so it survives any failure.
        log.error("turn deadlines were missed once", e);
      }
    }
  }

  private void step() {
    long nextNs = stepAll();
    sleepsUntilNs = nextNs;
    // Sleeps no longer than it has published, even if the deadline has moved later: a new deadline
    // that is later than the published one does not wake the thread.
    if (earliest() >= nextNs && !closed) {
      sleepUntil(nextNs);
    }
    sleepsUntilNs = AWAKE;
  }

  private void sleepUntil(long atNs) {
    if (atNs == Long.MAX_VALUE) {
      LockSupport.park(this);
    } else {
      long sleepNs = atNs - clock.nanoTime();
      if (sleepNs > 0) {
        LockSupport.parkNanos(this, sleepNs);
      }
    }
  }

  private long stepAll() {
    long nowNs = clock.nanoTime();
    for (GpuSeat seat : seats) {
      if (seat.wakeAtNs() <= nowNs) {
        seat.tick();
      }
    }
    return earliest();
  }

  private long earliest() {
    long nextNs = Long.MAX_VALUE;
    for (GpuSeat seat : seats) {
      nextNs = Math.min(nextNs, seat.wakeAtNs());
    }
    return nextNs;
  }

  /** Ends the thread. Turns are then passed on only when calls end, not at deadlines. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  /**
   * Waits until the thread has ended.
   *
   * @param deadlineNs when to stop waiting
   */
  public void awaitEnd(long deadlineNs) {
    ThreadEnd.await(thread, clock, deadlineNs);
  }
}
