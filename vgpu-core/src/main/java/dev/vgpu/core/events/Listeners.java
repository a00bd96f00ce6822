package dev.vgpu.core.events;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.flight.FlightEvents;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuListener;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Delivers events to listeners. Each listener has one thread at a time, which exists only while
 * events are pending. Thread-safe; never blocks the publisher.
 */
public final class Listeners {
  private static final Logger log = LoggerFactory.getLogger(Listeners.class);

  /**
   * The most events that may be pending for a listener; {@link GpuListener} documents the number.
   */
  private static final int MOST_PENDING = 10_000;

  private static final int MOST_RECENT = 256;

  private final NanoClock clock;
  private final Executor executor;
  private final List<Mailbox> mailboxes = new CopyOnWriteArrayList<>();
  private final ReentrantLock recentLock = new ReentrantLock();
  private final Queue<GpuEvent> recent = new ArrayDeque<>();

  /** Creates an instance without listeners. */
  public Listeners(NanoClock clock, Executor executor) {
    this.clock = clock;
    this.executor = executor;
  }

  /** Delivers an event to all current listeners, and keeps it for {@link #recent}. */
  public void publish(Function<Instant, GpuEvent> event) {
    GpuEvent made = event.apply(clock.now());
    keep(made);
    FlightEvents.record(made);
    for (Mailbox mailbox : mailboxes) {
      mailbox.put(made);
    }
  }

  private void keep(GpuEvent event) {
    recentLock.lock();
    try {
      recent.add(event);
      if (recent.size() > MOST_RECENT) {
        recent.remove();
      }
    } finally {
      recentLock.unlock();
    }
  }

  /** The latest events, oldest first. */
  public List<GpuEvent> recent() {
    recentLock.lock();
    try {
      return List.copyOf(recent);
    } finally {
      recentLock.unlock();
    }
  }

  /** Whether there is a listener. */
  public boolean areAny() {
    return !mailboxes.isEmpty();
  }

  /** Adds a listener. Running the result removes it; events published before that are delivered. */
  public Runnable listen(GpuListener listener) {
    Mailbox mailbox = new Mailbox(listener);
    mailboxes.add(mailbox);
    return () -> mailboxes.remove(mailbox);
  }

  /** The events not yet delivered to one listener. */
  private final class Mailbox {
    private final GpuListener listener;
    private final BlockingQueue<GpuEvent> pending = new ArrayBlockingQueue<>(MOST_PENDING);
    private final AtomicLong untold = new AtomicLong();
    private final AtomicLong dropped = new AtomicLong();

    Mailbox(GpuListener listener) {
      this.listener = listener;
    }

    void put(GpuEvent event) {
      if (!pending.offer(event)) {
        dropped.incrementAndGet();
      } else if (untold.getAndIncrement() == 0) {
        executor.execute(this::deliver);
      }
    }

    private void deliver() {
      do {
        GpuEvent event = pending.poll();
        if (event != null) {
          tell(event);
        }
        long lost = dropped.getAndSet(0);
        if (lost > 0) {
          log.warn("a listener is too slow: {} events were dropped; listener={}", lost, listener);
        }
      } while (untold.decrementAndGet() > 0);
    }

    private void tell(GpuEvent event) {
      try {
        listener.onEvent(event);
      } catch (RuntimeException | Error e) {
        log.warn(
            "a listener threw; it is told the next event all the same; listener={}", listener, e);
      }
    }
  }
}
