package dev.vgpu.core;

import java.util.concurrent.TimeUnit;

/** Waits for threads of ours that were told to end. */
public final class ThreadEnd {
  private ThreadEnd() {}

  /**
   * Waits until a thread has ended, also when interrupted: the interruption is kept. A thread does
   * not wait for itself.
   *
   * @param thread was told to end
   * @param clock the time
   * @param deadlineNs until when to wait at most: the thread may be in a caller's code
   */
  public static void await(Thread thread, NanoClock clock, long deadlineNs) {
    boolean interrupted = false;
    long leftNs = deadlineNs - clock.nanoTime();
    while (thread.isAlive() && thread != Thread.currentThread() && leftNs > 0) {
      try {
        thread.join(TimeUnit.NANOSECONDS.toMillis(leftNs) + 1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
      leftNs = deadlineNs - clock.nanoTime();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
