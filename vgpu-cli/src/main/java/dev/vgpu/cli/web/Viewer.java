package dev.vgpu.cli.web;

import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * One who watches: a thread that writes messages as fast as they are taken. Of those that are not
 * taken in time the oldest are dropped. {@link #offer} and {@link #end} are safe for use by several
 * threads.
 */
final class Viewer {
  private static final int MOST_QUEUED = 8;

  /** So many messages later, one who has taken nothing is gone. */
  private static final int MOST_DROPPED_IN_A_ROW = 20;

  private final BlockingQueue<byte[]> queue = new ArrayBlockingQueue<>(MOST_QUEUED);
  private final OutputStream to;
  private final AtomicInteger droppedInARow = new AtomicInteger();
  private volatile boolean isEnded;
  private volatile @Nullable Thread thread;

  Viewer(OutputStream to) {
    this.to = to;
  }

  /** Adds a message; called by one thread at a time. */
  synchronized void offer(byte[] message) {
    while (!queue.offer(message)) {
      if (queue.poll() != null) {
        droppedInARow.incrementAndGet();
      }
    }
    if (droppedInARow.get() > MOST_DROPPED_IN_A_ROW) {
      end();
    }
  }

  /** Ends it, also inside a write: the interrupt closes its connection. */
  void end() {
    isEnded = true;
    Thread writer = thread;
    if (writer != null) {
      writer.interrupt();
    }
  }

  /**
   * Writes until the connection ends, or it is ended.
   *
   * @param first what is written before all messages
   */
  void run(byte[] first) {
    thread = Thread.currentThread();
    try {
      for (byte[] message = first; !isEnded; message = queue.take()) {
        to.write(message);
        to.flush();
        droppedInARow.set(0);
      }
    } catch (IOException | InterruptedException e) {
      isEnded = true; // It has gone, or it was ended.
    }
  }
}
