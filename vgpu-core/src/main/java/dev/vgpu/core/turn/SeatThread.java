package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.ThreadEnd;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Steps the schedulers of a node's GPUs when a deadline comes: the end of a turn, of a linger, of a
 * cap. One daemon thread for all GPUs; it sleeps while nothing is due.
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
   * @param clock the time
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

  /** Sees to it that the thread is awake at a time. */
  void wakeBy(long atNs) {
    // The seat has published its deadline before this read; the thread publishes its sleep before
    // it reads the deadlines. So either the thread sees the deadline, or this sees the sleep.
    if (atNs < sleepsUntilNs) {
      LockSupport.unpark(thread);
    }
  }

  private void loop() {
    while (!closed) {
      try {
        step();
      } catch (RuntimeException | Error e) {
        // Whatever it is, the turns on all GPUs depend on this thread.
        log.error("the deadlines of turns were not looked at once", e);
      }
    }
  }

  private void step() {
    long nextNs = stepAll();
    sleepsUntilNs = nextNs;
    // Sleeps no longer than it has said, even if the deadline has moved away meanwhile: a new one
    // that is later than what it has said wakes nobody.
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

  /** Ends the thread. Turns are then passed on by the calls that end, no more by deadlines. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  /**
   * Waits until the thread has ended.
   *
   * @param deadlineNs until when at most
   */
  public void awaitEnd(long deadlineNs) {
    ThreadEnd.await(thread, clock, deadlineNs);
  }
}
