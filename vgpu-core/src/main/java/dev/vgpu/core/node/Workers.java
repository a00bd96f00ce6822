package dev.vgpu.core.node;

import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads of a node. Each task has its own thread, and one thread always exists. If the system
 * refuses another thread, the task waits for an existing one, so {@link #execute} never fails.
 * Thread-safe.
 */
final class Workers extends ThreadPoolExecutor {
  private static final Logger log = LoggerFactory.getLogger(Workers.class);
  private static final int IDLE_THREAD_SECONDS = 5;

  private final Handover handover;

  /** Starts the first thread. */
  Workers() {
    this(new Threads());
  }

  Workers(ThreadFactory threads) {
    this(threads, new Handover());
  }

  private Workers(ThreadFactory threads, Handover handover) {
    super(
        1,
        Integer.MAX_VALUE,
        IDLE_THREAD_SECONDS,
        TimeUnit.SECONDS,
        handover,
        threads,
        new DiscardPolicy()); // tasks after shutdown are dropped
    this.handover = handover;
    prestartCoreThread();
  }

  /** Refuses a task for which no thread waits, so that the executor starts one. */
  private static final class Handover extends LinkedTransferQueue<Runnable> {
    private static final long serialVersionUID = 1;

    @Override
    public boolean offer(Runnable task) {
      return tryTransfer(task);
    }

    /** Keeps the task for the first thread that becomes free. */
    void keep(Runnable task) {
      boolean ignored = super.offer(task); // the queue has no bound
    }
  }

  private static final class Threads implements ThreadFactory {
    private final AtomicLong made = new AtomicLong();

    @Override
    public Thread newThread(Runnable task) {
      Thread thread = new Worker(task, "vgpu-worker-" + made.getAndIncrement());
      thread.setDaemon(true);
      return thread;
    }
  }

  private static final class Worker extends Thread {
    Worker(Runnable task, String name) {
      super(task, name);
    }
  }

  /** {@return whether the current thread is one of these} */
  static boolean isCaller() {
    return Thread.currentThread() instanceof Worker;
  }

  @Override
  public void execute(Runnable task) {
    try {
      super.execute(task);
    } catch (OutOfMemoryError e) {
      log.warn("no thread can be started: task queued for one of {}", getPoolSize());
      handover.keep(task);
    }
  }
}
