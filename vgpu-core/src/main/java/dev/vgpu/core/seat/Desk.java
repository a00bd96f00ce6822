package dev.vgpu.core.seat;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the requests of the seat's clients on a bounded number of threads. Clients take turns, one
 * task each, so a client with many tasks delays the others by one task at most. The first thread is
 * started with the desk: otherwise, a seat on a machine that has run out of threads could not
 * answer. Thread-safe.
 */
final class Desk implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Desk.class);
  private static final long IDLE_THREAD_SECONDS = 5;

  private final String name;
  private final int mostThreads;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition news = lock.newCondition();
  private final Queue<Line> ready = new ArrayDeque<>();
  private final AtomicInteger started = new AtomicInteger();
  private int threads;
  private int idle;
  private boolean closed;

  /** Starts the first thread. */
  Desk(String name, int mostThreads) {
    this.name = name;
    this.mostThreads = mostThreads;
    threads = 1;
    start();
  }

  /**
   * The tasks of one client. They start in order, with at most {@code mostAtATime} running at once.
   */
  final class Line {
    private final int mostAtATime;
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private int running;
    private boolean isReady;

    Line(int mostAtATime) {
      this.mostAtATime = mostAtATime;
    }

    /** Queues a task. If the desk is closed, the task never runs. */
    void add(Runnable task) {
      lock.lock();
      try {
        tasks.add(task);
        queue();
        callThreads();
      } finally {
        lock.unlock();
      }
    }

    /** Removes and returns the tasks that have not started. */
    List<Runnable> clear() {
      lock.lock();
      try {
        if (isReady) {
          isReady = !ready.remove(this);
        }
        List<Runnable> forgotten = List.copyOf(tasks);
        tasks.clear();
        return forgotten;
      } finally {
        lock.unlock();
      }
    }

    /** The number of unfinished tasks. */
    int size() {
      lock.lock();
      try {
        return tasks.size() + running;
      } finally {
        lock.unlock();
      }
    }

    private void queue() {
      if (!isReady && running < mostAtATime && !tasks.isEmpty()) {
        isReady = true;
        ready.add(this);
      }
    }

    /** Takes its next task out; with the lock that made it ready, or it may have none any more. */
    private Runnable begin() {
      isReady = false;
      running++;
      Runnable task = tasks.remove();
      queue();
      callThreads();
      return () -> work(task);
    }

    private void work(Runnable task) {
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        log.error("a client's request failed", e);
      } finally {
        done();
      }
    }

    private void done() {
      lock.lock();
      try {
        running--;
        queue();
      } finally {
        lock.unlock();
      }
    }
  }

  private void callThreads() {
    news.signal();
    if (ready.size() > idle && threads < mostThreads) {
      startAnother();
    }
  }

  /** If no thread can be started, the existing ones do the work. */
  private void startAnother() {
    threads++;
    boolean begun = false;
    try {
      start();
      begun = true;
    } catch (OutOfMemoryError e) {
      log.warn("no thread can be started: desk={} threads={}", name, threads - 1);
    } finally {
      threads -= begun ? 0 : 1;
    }
  }

  private void start() {
    Thread thread = new Thread(this::run, "vgpu-" + name + "-" + started.getAndIncrement());
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    for (Runnable task = next(); task != null; task = next()) {
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        // A failure that cannot even be logged. The desk may have no other thread.
      }
    }
  }

  /** The task to run next; null if the thread is to end. */
  private @Nullable Runnable next() {
    lock.lock();
    try {
      while (ready.isEmpty() && !closed) {
        idle++;
        boolean told = true;
        try {
          if (threads > 1) {
            told = news.await(IDLE_THREAD_SECONDS, TimeUnit.SECONDS);
          } else {
            news.await(); // the last one stays
          }
        } catch (InterruptedException e) {
          log.debug("a thread of a desk was interrupted", e);
        } finally {
          idle--;
        }
        if (!told && ready.isEmpty() && threads > 1) {
          break;
        }
      }
      Line line = closed ? null : ready.poll();
      threads -= line == null ? 1 : 0;
      return line == null ? null : line.begin();
    } finally {
      lock.unlock();
    }
  }

  /** Starts no more tasks. */
  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      news.signalAll();
    } finally {
      lock.unlock();
    }
  }
}
