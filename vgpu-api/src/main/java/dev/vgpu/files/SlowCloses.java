package dev.vgpu.files;

import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Closes the connections of a server. One that may contain files, which the kernel then ends, is
 * closed on a thread of its own: for a TCP connection with {@code SO_LINGER}, that thread waits for
 * as long as the sender likes. The other end sees the end of the connection at once. Confined to
 * the server's thread, except where stated.
 */
public final class SlowCloses {
  /** With this many that are not closed yet, and wait for a thread, nobody is let in. */
  private static final int MOST_WAITING = 64;

  private final Selector selector;
  private final String threadName;
  private final int mostThreads;
  private final int mostWaiting;

  /**
   * A connection to close on another thread.
   *
   * @param unread finds the files in it; null if it is not known
   */
  private record Closing(SocketChannel channel, UnreadFiles.@Nullable Connection unread) {
    /**
     * First reads what is there: a channel that waits while it is closed also makes each thread
     * wait that asks for its options.
     */
    void close() {
      if (unread != null) {
        unread.discard();
      }
      closeHere(channel);
    }
  }

  /** Shut down and cancelled, but perhaps still registered: closing it would be left to select. */
  private List<Closing> cancelled = new ArrayList<>();

  private List<Closing> before = new ArrayList<>();

  /** Guards the rest. */
  private final ReentrantLock lock = new ReentrantLock();

  /** All that are not closed yet. */
  private final Set<SocketChannel> slow = new HashSet<>();

  private final Queue<Closing> waiting = new ArrayDeque<>();
  private int threads;

  /**
   * Creates it, with no thread yet.
   *
   * @param selector the server's
   * @param threadName the name of each thread that closes
   * @param mostThreads how many of them there may be
   * @param strangers how many connections there may be whose other ends are not known
   */
  public SlowCloses(Selector selector, String threadName, int mostThreads, int strangers) {
    this.selector = selector;
    this.threadName = threadName;
    this.mostThreads = mostThreads;
    this.mostWaiting = Math.max(1, Math.min(MOST_WAITING, strangers));
  }

  /**
   * Closes a connection, at once if that cannot take long.
   *
   * @param unread finds the files in it; null if the kernel refuses them
   */
  public void close(SocketChannel channel, UnreadFiles.@Nullable Connection unread) {
    if (unread != null && channel.isOpen()) {
      if (isSlow(channel)) {
        return;
      }
      shutDownInput(channel); // the other end cannot pass any more
      if (unread.mayHoldFiles()) {
        shutDownOutput(channel);
        later(channel, unread);
        return;
      }
    }
    closeHere(channel);
  }

  private boolean isSlow(SocketChannel channel) {
    lock.lock();
    try {
      return slow.contains(channel);
    } finally {
      lock.unlock();
    }
  }

  private void later(SocketChannel channel, UnreadFiles.Connection unread) {
    SelectionKey key = channel.keyFor(selector);
    if (key != null) {
      key.cancel();
    }
    lock.lock();
    try {
      slow.add(channel);
    } finally {
      lock.unlock();
    }
    cancelled.add(new Closing(channel, unread));
    selector.wakeup(); // the next two selections forget it
  }

  /**
   * Closes a connection on a thread of its own. On any thread.
   *
   * @param channel was never registered, and is not used any more
   */
  public void unregistered(SocketChannel channel) {
    shutDown(channel);
    close(List.of(new Closing(channel, null)));
  }

  /** Shows the other end the end of the connection, without closing it. On any thread. */
  public static void shutDown(SocketChannel channel) {
    shutDownInput(channel);
    shutDownOutput(channel);
  }

  private static void shutDownInput(SocketChannel channel) {
    try {
      SocketChannel ignored = channel.shutdownInput();
    } catch (IOException e) {
      // Nothing is lost: nothing can be passed to a broken connection either.
    }
  }

  private static void shutDownOutput(SocketChannel channel) {
    try {
      SocketChannel ignored = channel.shutdownOutput();
    } catch (IOException e) {
      // Nothing is lost: the other end has gone.
    }
  }

  private static void closeHere(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is lost: the connection is not used any more.
    }
  }

  /** Called after each selection. */
  public void selected() {
    if (before.isEmpty() && cancelled.isEmpty()) {
      return;
    }
    List<Closing> forgotten = before;
    before = cancelled;
    cancelled = new ArrayList<>();
    if (!before.isEmpty()) {
      selector.wakeup();
    }
    close(forgotten);
  }

  /** Called when the selector is closed. */
  public void ended() {
    close(before);
    close(cancelled);
  }

  private void close(List<Closing> forgotten) {
    lock.lock();
    try {
      waiting.addAll(forgotten);
      start(threads == 0 ? waiting.size() : forgotten.size());
    } finally {
      lock.unlock();
    }
  }

  private void start(int wanted) {
    for (int i = 0; i < wanted && threads < mostThreads; i++) {
      Thread closes = new Thread(this::closeAll, threadName);
      closes.setDaemon(true);
      try {
        closes.start();
      } catch (OutOfMemoryError e) { // no thread can be started; tried again later
        return;
      }
      threads++;
    }
  }

  private void closeAll() {
    for (Closing next = next(); next != null; next = next()) {
      next.close();
      lock.lock();
      try {
        slow.remove(next.channel);
      } finally {
        lock.unlock();
      }
    }
  }

  private @Nullable Closing next() {
    lock.lock();
    try {
      Closing next = waiting.poll();
      if (next == null) {
        threads--;
      }
      return next;
    } finally {
      lock.unlock();
    }
  }

  /** {@return whether so many are not closed yet that there should not be more} */
  public boolean areMany() {
    lock.lock();
    try {
      if (threads == 0) {
        start(waiting.size()); // where that has failed before
      }
      return waiting.size() + before.size() + cancelled.size() >= mostWaiting;
    } finally {
      lock.unlock();
    }
  }
}
