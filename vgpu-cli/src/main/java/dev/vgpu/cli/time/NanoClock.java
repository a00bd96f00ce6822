package dev.vgpu.cli.time;

import java.time.Instant;
import java.util.concurrent.locks.LockSupport;

/** The clock that the command reads and waits on. Safe for use by several threads. */
public interface NanoClock {
  /** {@return this machine's monotonic clock; its zero is arbitrary} */
  static NanoClock system() {
    return SystemNanoClock.INSTANCE;
  }

  /** {@return nanoseconds since the clock's zero} */
  long nowNs();

  /** {@return the date and time} */
  Instant wallTime();

  /**
   * Waits without using the processor.
   *
   * @param deadlineNs until when; a moment in the past returns at once
   * @throws InterruptedException if this thread is interrupted while it waits
   */
  void sleepUntil(long deadlineNs) throws InterruptedException;

  /** The machine's monotonic clock. */
  enum SystemNanoClock implements NanoClock {
    /** The only instance. */
    INSTANCE;

    @Override
    public long nowNs() {
      return System.nanoTime();
    }

    @Override
    public Instant wallTime() {
      return Instant.now();
    }

    @Override
    public void sleepUntil(long deadlineNs) throws InterruptedException {
      for (long left = deadlineNs - nowNs(); left > 0; left = deadlineNs - nowNs()) {
        LockSupport.parkNanos(left);
        if (Thread.interrupted()) {
          throw new InterruptedException("interrupted while waiting");
        }
      }
    }
  }
}
