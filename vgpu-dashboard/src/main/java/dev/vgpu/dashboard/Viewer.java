package dev.vgpu.dashboard;

import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A connection that watches the dashboard: a thread writes messages as fast as the client reads
 * them. If the queue is full, the oldest messages are dropped. {@link #offer} and {@link #end} are
 * safe for use by several threads.
 */
final class Viewer {
  private static final int MOST_QUEUED = 8;

  /** A viewer is disconnected once more messages were dropped without a single one written. */
  private static final int MOST_DROPPED_IN_A_ROW = 20;

  private final BlockingQueue<byte[]> queue = new ArrayBlockingQueue<>(MOST_QUEUED);
  private final OutputStream to;
  private final AtomicInteger droppedInARow = new AtomicInteger();
  private volatile boolean isEnded;
  private volatile @Nullable Thread thread;

  Viewer(OutputStream to) {
    this.to = to;
  }

  /** Adds a message. Called by one thread at a time. */
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

  /** Ends the connection, even during a write: the interrupt closes it. */
  void end() {
    isEnded = true;
    Thread writer = thread;
    if (writer != null) {
      writer.interrupt();
    }
  }

  /**
   * Writes messages until the connection ends, or {@link #end} is called.
   *
   * @param first the message to write before all others
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
      isEnded = true; // The client has gone, or end() was called.
    }
  }
}
