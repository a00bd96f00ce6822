package dev.vgpu.core.node;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The queue of submitted calls, and the few threads that run them. Thread-safe. */
public final class SubmittedCalls {
  private record Task<T extends @Nullable Object>(
      Callable<? extends T> call, CompletableFuture<T> future) {
    void run() {
      if (future.isDone()) {
        return; // cancelled by the caller before it started
      }
      try {
        future.complete(call.call());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        future.completeExceptionally(e);
      } catch (Throwable e) {
        future.completeExceptionally(e);
      }
    }
  }

  private final String id;
  private final Executor executor;
  private final ReentrantLock lock = new ReentrantLock();
  private final Queue<Task<?>> tasks = new ArrayDeque<>();
  private int working;
  private boolean closed;

  SubmittedCalls(String id, Executor executor) {
    this.id = id;
    this.executor = executor;
  }

  /** Queues a call. Up to {@code mostThreads} threads run the queued calls. */
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, int mostThreads) {
    CompletableFuture<T> future = new CompletableFuture<>();
    boolean startsThread;
    lock.lock();
    try {
      if (closed) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + id);
      }
      tasks.add(new Task<T>(call, future));
      startsThread = working < mostThreads;
      working += startsThread ? 1 : 0;
    } finally {
      lock.unlock();
    }
    if (startsThread) {
      executor.execute(this::work);
    }
    return future;
  }

  private void work() {
    for (Task<?> task = next(); task != null; task = next()) {
      task.run();
      Thread.interrupted(); // an interrupt left by one call must not affect the next
    }
  }

  private @Nullable Task<?> next() {
    lock.lock();
    try {
      Task<?> task = tasks.poll();
      if (task == null) {
        working--;
      }
      return task;
    } finally {
      lock.unlock();
    }
  }

  /** Fails all calls that have not started. */
  void close() {
    List<Task<?>> failed;
    lock.lock();
    try {
      closed = true;
      failed = new ArrayList<>(tasks);
      tasks.clear();
    } finally {
      lock.unlock();
    }
    for (Task<?> task : failed) {
      task.future.completeExceptionally(
          new IllegalStateException("the virtual GPU was closed: id=" + id));
    }
  }
}
