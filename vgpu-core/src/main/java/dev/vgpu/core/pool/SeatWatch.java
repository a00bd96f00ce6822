package dev.vgpu.core.pool;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.seat.LinkLoop;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sees to it that the process which has the seat serves: asks the thread that serves the clients,
 * now and then, to go through what each of their messages needs, and has the seat given up if no
 * answer comes. A thread of its own, which takes no lock.
 *
 * <p>Only time that this thread itself was running counts. A process that is stopped, or comes late
 * to its processor, is silent as a whole: it is not deposed for that, and cannot depose itself.
 */
final class SeatWatch implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatWatch.class);
  private static final long EVERY_NS = 70_000_000;

  /** So many looks in time without an answer mean that none will come. */
  private static final int MOST_SILENT = 4;

  private final Node node;
  private final LinkLoop loop;
  private final Consumer<String> whenMute;
  private volatile boolean answered = true;
  private volatile boolean closed;

  private SeatWatch(Node node, LinkLoop loop, Consumer<String> whenMute) {
    this.node = node;
    this.loop = loop;
    this.whenMute = whenMute;
  }

  /** Begins; {@code whenMute} is run once at most, on the thread of the watch. */
  static SeatWatch start(Node node, LinkLoop loop, Consumer<String> whenMute) {
    SeatWatch watch = new SeatWatch(node, loop, whenMute);
    Thread thread = new Thread(watch::run, "vgpu-seat-watch");
    thread.setDaemon(true);
    thread.start();
    return watch;
  }

  private void run() {
    NanoClock clock = node.clock();
    long lastNs = clock.nanoTime();
    int silent = 0;
    while (!closed) {
      if (answered) {
        silent = 0;
        answered = false;
        loop.perform(this::serve);
      }
      LockSupport.parkNanos(this, EVERY_NS);
      long nowNs = clock.nanoTime();
      boolean inTime = nowNs - lastNs < 2 * EVERY_NS;
      lastNs = nowNs;
      if (!answered && inTime && !closed && ++silent >= MOST_SILENT) {
        giveUp();
        return;
      }
    }
  }

  private void giveUp() {
    try {
      whenMute.accept("its clients have not been served for " + MOST_SILENT * EVERY_NS + " ns");
    } catch (RuntimeException | Error e) {
      log.error("the seat could not be given up in order", e);
    }
  }

  /** What a client's message may need: this thread, and the scheduler of each GPU. */
  private void serve() {
    node.visitSeats();
    answered = true;
  }

  @Override
  public void close() {
    closed = true;
  }
}
