package dev.vgpu.core.seat;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.wire.LinkLoop;
import dev.vgpu.spi.Enforcement;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches whether the process that holds the seat serves. Periodically it asks the thread that
 * serves the clients to visit everything that a message may need, and each backend's thread that
 * serves programs for a sign of life. If an answer is missing, the seat is given up. A thread that
 * sleeps until there is work is not woken for that: the kernel wakes it when a message comes. The
 * watch has its own thread, which takes no lock.
 *
 * <p>A process that is stopped is silent as a whole and cannot depose itself: each stop counts for
 * 100 ms at most, however long it was. A process whose threads wait for a processor is merely late,
 * and the next holder would be later still. If some thread of it always waits for a processor, a
 * longer limit applies.
 */
final class SeatWatch implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatWatch.class);
  private static final long MILLI_NS = 1_000_000;

  /** The time until the next question if all answered at once. */
  private static final long REST_NS = 200 * MILLI_NS;

  /** The time between two looks while an answer is missing. */
  private static final long EVERY_NS = 50 * MILLI_NS;

  /** The number of timely looks without an answer after which the seat is given up. */
  private static final int MOST_SILENT = 4;

  /**
   * The same limit, including looks at which a thread of this process waited for a processor. A
   * look that is itself late by {@link #EVERY_NS} or more counts twice.
   */
  private static final int MOST_LATE = 100;

  private final Node node;
  private final LinkLoop loop;
  private final Supplier<List<Enforcement>> backends;
  private final Consumer<String> whenMute;
  private final LongSupplier waitedNs;

  /** The number of answers still missing. */
  private final AtomicInteger awaited = new AtomicInteger();

  private volatile boolean closed;

  private SeatWatch(
      Node node,
      LinkLoop loop,
      Supplier<List<Enforcement>> backends,
      Consumer<String> whenMute,
      LongSupplier waitedNs) {
    this.node = node;
    this.loop = loop;
    this.backends = backends;
    this.whenMute = whenMute;
    this.waitedNs = waitedNs;
  }

  /** Starts the watch. {@code whenMute} runs at most once, on the thread of the watch. */
  static SeatWatch start(
      Node node, LinkLoop loop, Supplier<List<Enforcement>> backends, Consumer<String> whenMute) {
    return start(
        node,
        loop,
        backends,
        whenMute,
        new ProcessorWaits(node.clock()::nanoTime)::mostSinceLastNs);
  }

  /**
   * Starts the watch. {@code waitedNs} returns the longest wait of a thread for a processor since
   * its last call.
   */
  static SeatWatch start(
      Node node,
      LinkLoop loop,
      Supplier<List<Enforcement>> backends,
      Consumer<String> whenMute,
      LongSupplier waitedNs) {
    SeatWatch watch = new SeatWatch(node, loop, backends, whenMute, waitedNs);
    Thread thread = new Thread(watch::run, "vgpu-seat-watch");
    thread.setDaemon(true);
    thread.start();
    return watch;
  }

  private void run() {
    NanoClock clock = node.clock();
    long lastNs = clock.nanoTime();
    int silent = 0;
    int late = 0;
    while (!closed) {
      long pauseNs = EVERY_NS;
      if (awaited.get() == 0) {
        silent = 0;
        late = 0;
        ask();
        pauseNs = awaited.get() == 0 ? REST_NS : EVERY_NS;
      }
      LockSupport.parkNanos(this, pauseNs);
      if (awaited.get() > 0 && !closed) {
        if (clock.nanoTime() - lastNs >= pauseNs + EVERY_NS) {
          late += 2; // also after a stop, however long it was
        } else if (waitedNs() > ProcessorWaits.MOST_WAITED_NS) {
          late++;
        } else {
          silent++;
        }
        if (silent >= MOST_SILENT || silent + late >= MOST_LATE) {
          giveUp((silent + late) * EVERY_NS);
          return;
        }
      }
      lastNs = clock.nanoTime(); // a look at many threads takes a while, which makes no look late
    }
  }

  /** Nobody else would notice that the holder serves no more: a failure does not end the watch. */
  private long waitedNs() {
    try {
      return waitedNs.getAsLong();
    } catch (RuntimeException | Error e) {
      log.error("it is not known how long threads waited for a processor", e);
      return 0;
    }
  }

  private void ask() {
    List<Enforcement> others = backends.get();
    boolean isReady = loop.isAsleep() && node.areSeatsFree();
    awaited.set((isReady ? 0 : 1) + others.size());
    if (!isReady) {
      loop.perform(this::serve);
    }
    for (Enforcement other : others) {
      try {
        other.whenServing(awaited::decrementAndGet);
      } catch (RuntimeException | Error e) {
        log.error("a backend could not be asked whether it serves", e);
      }
    }
  }

  private void giveUp(long silentNs) {
    try {
      whenMute.accept(
          "its clients or programs have not been served for " + silentNs / MILLI_NS + " ms");
    } catch (RuntimeException | Error e) {
      log.error("giving up the seat failed", e);
    }
  }

  /** Visits everything that a client's message may need: this thread, and each GPU's scheduler. */
  private void serve() {
    node.visitSeats();
    awaited.decrementAndGet();
  }

  @Override
  public void close() {
    closed = true;
  }
}
