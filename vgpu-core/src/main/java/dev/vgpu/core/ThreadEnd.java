package dev.vgpu.core;

import java.util.concurrent.TimeUnit;

/** Waits for the library's own threads to end. */
public final class ThreadEnd {
  private ThreadEnd() {}

  /**
   * Waits until a thread has ended or the deadline has passed. An interrupt does not end the wait;
   * the interrupt status is restored afterwards. If the caller is that thread, returns at once.
   *
   * @param thread a thread that was told to end
   * @param clock the time source
   * @param deadlineNs when to stop waiting: the thread may be running a caller's code
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
