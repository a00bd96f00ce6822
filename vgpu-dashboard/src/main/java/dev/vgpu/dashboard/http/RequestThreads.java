package dev.vgpu.dashboard.http;

import java.time.Duration;
import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The threads of an {@link com.sun.net.httpserver.HttpServer}. Each task is a whole exchange: the
 * thread reads the request and writes the answer, and the client can delay both. An exchange that
 * takes too long is ended by an interrupt, which closes its connection. While others wait for a
 * thread, the oldest exchanges are ended much sooner. Safe for use by several threads.
 */
public final class RequestThreads implements Executor, AutoCloseable {
  private static final int MOST = 64;
  private static final Duration LOOK = Duration.ofMillis(250);
  private static final int MOST_LOOKS = 40;
  private static final int MOST_LOOKS_WHILE_OTHERS_WAIT = 4;

  /** How many connections may wait to be accepted. */
  public static final int BACKLOG = 1_024;

  private final ThreadPoolExecutor threads;
  private final ScheduledExecutorService watch;
  private final Set<Exchange> exchanges = ConcurrentHashMap.newKeySet();
  private final AtomicLong started = new AtomicLong();

  /** Creates threads with names that begin with {@code name}. */
  public RequestThreads(String name) {
    this(name, MOST, LOOK);
  }

  @SuppressWarnings("FutureReturnValueIgnored") // look() throws nothing
  RequestThreads(String name, int most, Duration look) {
    long lookNs = look.toNanos();
    threads =
        new ThreadPoolExecutor(
            most,
            most,
            MOST_LOOKS * lookNs,
            TimeUnit.NANOSECONDS,
            new LinkedBlockingQueue<>(),
            daemons(name));
    threads.allowCoreThreadTimeOut(true);
    watch = Executors.newSingleThreadScheduledExecutor(daemons(name + "-watch"));
    // Not at a fixed rate: after the process stood still, the looks that it missed would come at
    // once
    // and end every exchange.
    watch.scheduleWithFixedDelay(this::look, lookNs, lookNs, TimeUnit.NANOSECONDS);
  }

  /** {@return a factory of daemon threads whose names begin with {@code name}} */
  public static ThreadFactory daemons(String name) {
    AtomicInteger number = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  private static final class Exchange {
    private final long number;
    private final Thread thread;
    private int looks;
    private boolean isOver;

    Exchange(long number) {
      this.number = number;
      this.thread = Thread.currentThread();
    }

    long number() {
      return number;
    }

    /** Interrupts the exchange if this was its last look. */
    synchronized boolean endsAfter(int most) {
      boolean isEnded = ++looks >= most && !isOver;
      if (isEnded) {
        thread.interrupt();
      }
      return isEnded;
    }

    /** From now on the thread is not interrupted any more. */
    synchronized void over() {
      isOver = true;
      Thread.interrupted();
    }
  }

  @Override
  public void execute(Runnable task) {
    threads.execute(
        () -> {
          Exchange exchange = new Exchange(started.getAndIncrement());
          exchanges.add(exchange);
          try {
            task.run();
          } finally {
            exchanges.remove(exchange);
            exchange.over();
          }
        });
  }

  /** Ends at most as many exchanges early as others wait. */
  private void look() {
    int waiting = threads.getQueue().size();
    for (Exchange exchange :
        exchanges.stream().sorted(Comparator.comparingLong(Exchange::number)).toList()) {
      if (exchange.endsAfter(waiting > 0 ? MOST_LOOKS_WHILE_OTHERS_WAIT : MOST_LOOKS)) {
        waiting--;
      }
    }
  }

  /** {@return how many exchanges have a thread} */
  int running() {
    return exchanges.size();
  }

  /** Interrupts all exchanges. A second call does nothing. */
  @Override
  public void close() {
    watch.shutdownNow();
    threads.shutdownNow();
  }
}
