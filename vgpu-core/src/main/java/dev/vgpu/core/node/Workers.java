package dev.vgpu.core.node;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
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

  private final Queue<Runnable> waiting = new ConcurrentLinkedQueue<>();

  /** Starts the first thread. */
  Workers() {
    this(new Threads());
  }

  Workers(ThreadFactory threads) {
    super(
        1,
        Integer.MAX_VALUE,
        IDLE_THREAD_SECONDS,
        TimeUnit.SECONDS,
        new SynchronousQueue<>(),
        threads,
        new DiscardPolicy()); // tasks after shutdown are dropped
    prestartCoreThread();
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
      waiting.add(task);
      boolean ignored = getQueue().offer(this::runWaiting); // one may be free by now
    }
  }

  @Override
  protected void afterExecute(Runnable task, @Nullable Throwable thrown) {
    runWaiting();
  }

  private void runWaiting() {
    for (Runnable next = waiting.poll(); next != null; next = waiting.poll()) {
      next.run();
    }
  }
}
