package dev.vgpu.core.seat;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.ThreadEnd;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads and writes all links of a process, on one daemon thread that sleeps while nothing comes.
 * Safe for use by several threads.
 */
public final class LinkLoop implements AutoCloseable {
  /** What a process may send at once before it has said who it is. */
  public static final int MOST_FRAME_BYTES_AT_FIRST = 4 << 10;

  /** What a client may send at once. */
  public static final int MOST_FRAME_BYTES_OF_CLIENT = 256 << 10;

  /** What the seat may send at once: lists of all that is leased. */
  public static final int MOST_FRAME_BYTES_OF_SEAT = 16 << 20;

  private static final int MOST_QUEUED_BYTES = 32 << 20;
  private static final long MILLI_NS = 1_000_000;
  private static final long PAUSE_NS = 100 * MILLI_NS;
  private static final Logger log = LoggerFactory.getLogger(LinkLoop.class);

  /** Is called now and then, for what is due by time. */
  public interface Ticker {
    /**
     * Does what is due.
     *
     * @param nowNs the present
     * @return when to call again at the latest; {@link Long#MAX_VALUE}: not
     */
    long tick(long nowNs);
  }

  private final NanoClock clock;
  private final Selector selector;
  private final Thread thread;
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private volatile @Nullable Ticker ticker;
  private volatile boolean closed;

  // Confined to the thread.
  private @Nullable SelectionKey paused;
  private long resumeNs;

  /**
   * Starts the thread.
   *
   * @param clock the time
   * @throws IOException if the system gives no selector
   */
  public LinkLoop(NanoClock clock) throws IOException {
    this.clock = clock;
    this.selector = Selector.open();
    this.thread = new Thread(this::run, "vgpu-link");
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Connects to the process that listens.
   *
   * @param socket where
   * @param handler is told what arrives
   * @return the link
   * @throws IOException if nobody listens
   */
  public Link connect(Path socket, Link.Handler handler) throws IOException {
    SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
    return add(channel, handler, MOST_FRAME_BYTES_OF_SEAT);
  }

  private Link add(SocketChannel channel, Link.Handler handler, int mostFrameBytes)
      throws IOException {
    channel.configureBlocking(false);
    Link link = new Link(channel, this, handler, mostFrameBytes, MOST_QUEUED_BYTES);
    perform(
        () -> {
          try {
            link.register(channel.register(selector, SelectionKey.OP_READ, link));
          } catch (ClosedChannelException e) {
            link.close("closed before it began");
          }
        });
    return link;
  }

  /**
   * Listens for processes that connect.
   *
   * @param server bound
   * @param accept makes a handler for each; null turns it away
   * @throws IOException if it cannot
   */
  public void listen(
      ServerSocketChannel server, Function<SocketChannel, Link.@Nullable Handler> accept)
      throws IOException {
    server.configureBlocking(false);
    perform(
        () -> {
          try {
            server.register(selector, SelectionKey.OP_ACCEPT, accept);
          } catch (ClosedChannelException e) {
            log.debug("closed before it listened", e);
          }
        });
  }

  /**
   * Sets what is called by time.
   *
   * @param called now and then, on the loop's thread
   */
  public void ticker(@Nullable Ticker called) {
    ticker = called;
    selector.wakeup();
  }

  /**
   * Does something on the loop's thread; at once, if this is it.
   *
   * @param task must not block
   */
  public void perform(Runnable task) {
    if (Thread.currentThread() == thread) {
      task.run();
    } else {
      tasks.add(task);
      selector.wakeup();
    }
  }

  /** Calls the ticker soon. */
  public void wakeup() {
    selector.wakeup();
  }

  void writeLater(Link link) {
    perform(() -> wantWrites(link));
  }

  void closeLater(Link link) {
    tasks.add(link::tellClosed); // never at once: the closer may hold locks
    selector.wakeup();
  }

  private static void wantWrites(Link link) {
    SelectionKey key = link.key;
    if (key != null && key.isValid()) {
      key.interestOps(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
    }
  }

  private void run() {
    try {
      while (!closed) {
        Ticker now = ticker;
        long dueNs = now == null ? Long.MAX_VALUE : now.tick(clock.nanoTime());
        SelectionKey waits = paused;
        if (waits != null) {
          resume(waits);
          dueNs = Math.min(dueNs, resumeNs);
        }
        runTasks();
        select(dueNs);
        runTasks();
      }
    } catch (IOException | ClosedSelectorException e) {
      log.error("the links to other processes are lost", e);
    } finally {
      end();
    }
  }

  private void select(long dueNs) throws IOException {
    if (!tasks.isEmpty()) {
      selector.selectNow(this::ready);
    } else if (dueNs == Long.MAX_VALUE) {
      selector.select(this::ready);
    } else {
      long leftMs = (dueNs - clock.nanoTime() + MILLI_NS - 1) / MILLI_NS;
      selector.select(this::ready, Math.max(1, leftMs));
    }
  }

  private void runTasks() {
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      try {
        task.run();
      } catch (RuntimeException e) {
        log.error("work between processes failed", e);
      }
    }
  }

  private void ready(SelectionKey key) {
    try {
      if (key.attachment() instanceof Link link) {
        if (key.isWritable() && !link.write()) {
          key.interestOps(SelectionKey.OP_READ);
        }
        if (key.isReadable()) {
          link.read();
        }
      } else if (key.isAcceptable()) {
        accept(key);
      }
    } catch (CancelledKeyException e) {
      log.debug("closed meanwhile", e);
    } catch (RuntimeException e) {
      log.error("a message from another process could not be worked on", e);
      if (key.attachment() instanceof Link link) {
        link.close("it could not be served: " + e);
      }
    }
  }

  @SuppressWarnings("unchecked")
  private void accept(SelectionKey key) {
    try {
      SocketChannel channel = ((ServerSocketChannel) key.channel()).accept();
      if (channel == null) {
        return;
      }
      Link.Handler handler =
          ((Function<SocketChannel, Link.@Nullable Handler>) key.attachment()).apply(channel);
      if (handler == null) {
        channel.close();
      } else {
        add(channel, handler, MOST_FRAME_BYTES_AT_FIRST);
      }
    } catch (IOException e) {
      log.warn("a process could not be let in: {}", e.getMessage());
      key.interestOps(0); // it would be tried again at once, for ever
      paused = key;
      resumeNs = clock.nanoTime() + PAUSE_NS;
    }
  }

  private void resume(SelectionKey key) {
    if (clock.nanoTime() - resumeNs >= 0) {
      paused = null;
      if (key.isValid()) {
        key.interestOps(SelectionKey.OP_ACCEPT);
      }
    }
  }

  private void end() {
    closed = true;
    for (SelectionKey key : selector.keys()) {
      if (key.attachment() instanceof Link link) {
        link.close("this process has closed it");
      }
    }
    runTasks();
    try {
      selector.close();
    } catch (IOException e) {
      log.debug("a selector could not be closed", e);
    }
  }

  /** Closes all links and ends the thread, soon. A second call does nothing. */
  @Override
  public void close() {
    closed = true;
    selector.wakeup();
  }

  /**
   * Waits until the thread has ended, which must have been told so.
   *
   * @param deadlineNs until when at most
   */
  public void awaitEnd(long deadlineNs) {
    ThreadEnd.await(thread, clock, deadlineNs);
  }
}
