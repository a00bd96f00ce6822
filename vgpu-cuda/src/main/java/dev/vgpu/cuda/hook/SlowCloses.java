package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.pages.UnreadFiles;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closes the connections of programs. One that may contain files, which the kernel then ends, is
 * closed on a thread of its own: for a TCP connection with {@code SO_LINGER}, that thread waits for
 * as long as the sender likes. The other end sees the end of the connection at once. Confined to
 * the server's thread, except where stated.
 */
final class SlowCloses {
  private static final Logger log = LoggerFactory.getLogger(SlowCloses.class);

  /** With this many that are not closed yet, and wait for a thread, no program is let in. */
  private static final int MOST_WAITING = 64;

  private static final int MOST_THREADS = 16;

  private final Selector selector;
  private final int mostWaiting;

  /** Shut down and cancelled, but perhaps still registered: closing it would be left to select. */
  private List<SocketChannel> cancelled = new ArrayList<>();

  private List<SocketChannel> before = new ArrayList<>();

  /** Guards the rest. */
  private final ReentrantLock lock = new ReentrantLock();

  private final Queue<SocketChannel> waiting = new ArrayDeque<>();
  private int threads;

  /** {@code strangers}: how many connections of unknown programs there may be. */
  SlowCloses(Selector selector, int strangers) {
    this.selector = selector;
    this.mostWaiting = Math.min(MOST_WAITING, strangers);
  }

  /** Closes a connection, at once if that cannot take long. */
  void close(SocketChannel channel, UnreadFiles.@Nullable Connection unread) {
    try {
      if (unread != null && channel.isOpen()) {
        channel.shutdownInput(); // the other end cannot pass any more
        if (unread.mayHoldFiles()) {
          channel.shutdownOutput();
          later(channel);
          return;
        }
      }
      channel.close();
    } catch (IOException e) {
      log.debug("a connection would not close", e);
    }
  }

  /** Closes a connection on a thread of its own. */
  void later(SocketChannel channel) {
    if (cancelled.contains(channel) || before.contains(channel)) {
      return;
    }
    SelectionKey key = channel.keyFor(selector);
    if (key != null) {
      key.cancel();
    }
    cancelled.add(channel);
    selector.wakeup(); // the next two selections forget it
  }

  /** Called after each selection. */
  void selected() {
    if (before.isEmpty() && cancelled.isEmpty()) {
      return;
    }
    List<SocketChannel> forgotten = before;
    before = cancelled;
    cancelled = new ArrayList<>();
    if (!before.isEmpty()) {
      selector.wakeup();
    }
    close(forgotten);
  }

  /** Called when the selector is closed. */
  void ended() {
    close(before);
    close(cancelled);
  }

  private void close(List<SocketChannel> forgotten) {
    lock.lock();
    try {
      waiting.addAll(forgotten);
      int wanted = threads == 0 ? waiting.size() : forgotten.size();
      for (int i = 0; i < wanted && threads < MOST_THREADS; i++) {
        Thread closes = new Thread(this::closeAll, "vgpu-hook-close");
        closes.setDaemon(true);
        closes.start();
        threads++;
      }
    } finally {
      lock.unlock();
    }
  }

  private void closeAll() {
    for (SocketChannel next = next(); next != null; next = next()) {
      try {
        next.close();
      } catch (IOException e) {
        log.debug("a connection would not close", e);
      }
    }
  }

  private @Nullable SocketChannel next() {
    lock.lock();
    try {
      SocketChannel next = waiting.poll();
      if (next == null) {
        threads--;
      }
      return next;
    } finally {
      lock.unlock();
    }
  }

  /** {@return whether so many are not closed yet that there should not be more} */
  boolean areMany() {
    lock.lock();
    try {
      return waiting.size() + before.size() + cancelled.size() >= mostWaiting;
    } finally {
      lock.unlock();
    }
  }
}
