package dev.vgpu.core.wire;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.ThreadEnd;
import dev.vgpu.files.OpenFiles;
import dev.vgpu.files.SlowCloses;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads and writes all links of a process, on one daemon thread that sleeps while there is nothing
 * to do. A failure on one link closes that link and no other. Thread-safe.
 *
 * <p>The memory held for all peers together is bounded: partial frames, unanswered requests, and
 * unread replies. If it exceeds {@value #MOST_HELD_BYTES} bytes, the link that holds most is
 * closed.
 */
public final class LinkLoop implements AutoCloseable {
  /** The kind of peer, with the limits for its messages. */
  public enum Peer {
    /** A process that has not identified itself yet. */
    STRANGER(4 << 10, 16),
    /** A client of the seat. */
    CLIENT(256 << 10, 1_000),
    /** The seat, which sends lists of all leases. */
    SEAT(16 << 20, 65_535);

    final int mostFrameBytes;
    final int mostPairs;

    Peer(int mostFrameBytes, int mostPairs) {
      this.mostFrameBytes = mostFrameBytes;
      this.mostPairs = mostPairs;
    }
  }

  /** The most memory that all links together may hold, in bytes. */
  public static final long MOST_HELD_BYTES = 24 << 20;

  /** The most connections whose end takes long because of the files in them. */
  private static final int MOST_SLOW = 64;

  private static final int CLOSING_THREADS = 8;
  private static final long MILLI_NS = 1_000_000;
  private static final long PAUSE_NS = 100 * MILLI_NS;
  private static final Logger log = LoggerFactory.getLogger(LinkLoop.class);

  /** Called periodically, for work that is due at a certain time. */
  public interface Ticker {
    /**
     * Does what is due.
     *
     * @param nowNs the current time
     * @return when to call again at the latest; {@link Long#MAX_VALUE} for never
     */
    long tick(long nowNs);
  }

  /**
   * Where others connect.
   *
   * @param accept creates a handler for each connection; null refuses it
   * @param unread finds the files that they pass; null if the kernel refuses them
   */
  private record Listener(
      Function<SocketChannel, Link.@Nullable Handler> accept, @Nullable UnreadFiles unread) {}

  private final NanoClock clock;
  private final Selector selector;
  private final SlowCloses closes;
  private final Thread thread;
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final Set<Link> links = ConcurrentHashMap.newKeySet();
  private final AtomicLong held = new AtomicLong();
  private volatile @Nullable Ticker ticker;
  private volatile boolean closed;

  /** Whether the thread waits for the kernel to wake it. */
  private volatile boolean asleep;

  /** Whether connections may contain files, which this process then finds. */
  private volatile boolean findsFiles;

  // Confined to the thread.
  private @Nullable SelectionKey paused;
  private long resumeNs;

  /**
   * Starts the thread.
   *
   * @param clock the time source
   * @throws IOException if the system provides no selector
   */
  public LinkLoop(NanoClock clock) throws IOException {
    this.clock = clock;
    this.selector = Selector.open();
    int mostSlow = OpenFiles.part(4 * MOST_SLOW) / 4;
    this.closes = new SlowCloses(selector, "vgpu-link-close", CLOSING_THREADS, mostSlow);
    this.thread = new Thread(this::run, "vgpu-link");
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Connects to a listening process.
   *
   * @param socket the path of its socket
   * @param handler receives the messages
   * @return the link
   * @throws IOException if no process listens, or lets nobody in: waiting for one that is stopped
   *     would have no end
   */
  public Link connect(Path socket, Link.Handler handler) throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    Link added = null;
    try {
      channel.configureBlocking(false);
      if (!channel.connect(UnixDomainSocketAddress.of(socket))) {
        throw new IOException("too many processes wait to be let in: path=" + socket);
      }
      added = add(channel, null, handler, Peer.SEAT);
      return added;
    } finally {
      if (added == null) {
        channel.close();
      }
    }
  }

  private Link add(
      SocketChannel channel,
      UnreadFiles.@Nullable Connection unread,
      Link.Handler handler,
      Peer peer)
      throws IOException {
    channel.configureBlocking(false);
    Link link = new Link(channel, unread, this, handler, peer);
    links.add(link);
    perform(
        () -> {
          try {
            link.register(channel.register(selector, SelectionKey.OP_READ, link));
          } catch (ClosedChannelException e) {
            link.close("closed before it began");
          }
        });
    if (closed) { // the thread may have missed it at its end
      links.remove(link);
      link.abandon();
      throw new IOException("this process has closed its links");
    }
    return link;
  }

  /**
   * Accepts connections of other processes.
   *
   * @param server a bound channel
   * @param unread finds the files that the others pass; empty if the kernel refuses them
   * @param accept creates a handler for each connection; null refuses it
   * @throws IOException if the channel cannot be made non-blocking
   */
  public void listen(
      ServerSocketChannel server,
      Optional<UnreadFiles> unread,
      Function<SocketChannel, Link.@Nullable Handler> accept)
      throws IOException {
    server.configureBlocking(false);
    findsFiles = unread.isPresent();
    Listener listener = new Listener(accept, unread.orElse(null));
    perform(
        () -> {
          try {
            server.register(selector, SelectionKey.OP_ACCEPT, listener);
          } catch (ClosedChannelException e) {
            log.debug("closed before it listened", e);
          }
        });
  }

  /**
   * Sets the ticker.
   *
   * @param called called periodically on the loop's thread; null for none
   */
  public void ticker(@Nullable Ticker called) {
    ticker = called;
    selector.wakeup();
  }

  /**
   * Runs a task on the loop's thread; immediately, if that is the calling thread.
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

  /** Makes the loop call the ticker soon. */
  public void wakeup() {
    selector.wakeup();
  }

  /** {@return whether its thread has nothing to do, and reads the next message as it comes} */
  public boolean isAsleep() {
    return asleep && tasks.isEmpty();
  }

  /** {@return whether it still reads and writes} */
  public boolean isAlive() {
    return !closed && thread.isAlive();
  }

  /** Runs a task for a link on the loop's thread. A failure closes the link. */
  void performFor(Link link, Runnable task) {
    perform(
        () -> {
          try {
            task.run();
          } catch (RuntimeException | Error e) {
            failed(link, e);
          }
        });
  }

  void closeLater(Link link) {
    // Never immediately: the closing thread may hold locks.
    tasks.add(
        () -> {
          links.remove(link);
          link.tellClosed();
        });
    selector.wakeup();
  }

  long heldBytes() {
    return held.get();
  }

  /** Adjusts the number of bytes that the links hold. On any thread. */
  void hold(long bytes) {
    if (held.addAndGet(bytes) > MOST_HELD_BYTES && bytes > 0) {
      closeFullest();
    }
  }

  /** Ignores links that are closed already: they release their memory in a moment. */
  private void closeFullest() {
    long all = 0;
    Link fullest = null;
    for (Link link : links) {
      if (!link.isClosed()) {
        all += link.heldBytes();
        fullest = fullest == null || link.heldBytes() > fullest.heldBytes() ? link : fullest;
      }
    }
    if (fullest != null && all > MOST_HELD_BYTES) {
      fullest.close("it holds the most memory of this process: bytes=" + fullest.heldBytes());
    }
  }

  private void run() {
    try {
      while (!closed) {
        try {
          round();
        } catch (ClosedSelectorException e) {
          throw e;
        } catch (RuntimeException | Error e) {
          // Continue after any failure: all peers of this process depend on this thread.
          LockSupport.parkNanos(this, MILLI_NS);
          log.error("one pass over the links to other processes failed", e);
        }
      }
    } catch (IOException | ClosedSelectorException e) {
      log.error("the links to other processes are lost", e);
    } finally {
      end();
    }
  }

  private long tick() {
    Ticker now = ticker;
    try {
      return now == null ? Long.MAX_VALUE : now.tick(clock.nanoTime());
    } catch (RuntimeException | Error e) {
      log.error("a periodic task failed", e);
      return clock.nanoTime() + PAUSE_NS;
    }
  }

  private void round() throws IOException {
    long dueNs = tick();
    SelectionKey waits = paused;
    if (waits != null) {
      resume(waits);
      dueNs = Math.min(dueNs, resumeNs);
    }
    runTasks();
    select(dueNs);
    runTasks();
  }

  private void select(long dueNs) throws IOException {
    if (!tasks.isEmpty()) {
      selector.selectNow(this::ready);
      closes.selected();
      return;
    }
    long leftMs = 0; // until a message comes
    if (dueNs != Long.MAX_VALUE) {
      leftMs = Math.max(1, (dueNs - clock.nanoTime() + MILLI_NS - 1) / MILLI_NS);
    }
    asleep = true;
    try {
      selector.select(this::ready, leftMs);
    } finally {
      asleep = false;
    }
    closes.selected();
  }

  private void runTasks() {
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        log.error("work between processes failed", e);
      }
    }
  }

  private void ready(SelectionKey key) {
    asleep = false;
    try {
      if (key.attachment() instanceof Link link) {
        if (key.isWritable()) {
          link.writeAndWait();
        }
        if (key.isReadable()) {
          link.read();
        }
      } else if (key.isAcceptable()) {
        accept(key);
      }
    } catch (CancelledKeyException e) {
      log.debug("closed meanwhile", e);
    } catch (RuntimeException | Error e) {
      failed(key.attachment() instanceof Link link ? link : null, e);
    }
  }

  /** Closes before logging: if the heap is exhausted, logging may fail. */
  private static void failed(@Nullable Link link, Throwable because) {
    if (link != null) {
      link.close("it could not be served");
    }
    log.error("a message from another process could not be processed", because);
  }

  private void accept(SelectionKey key) {
    try {
      if (closes.areMany()) {
        throw new IOException("others pass files whose end takes long");
      }
      SocketChannel channel = ((ServerSocketChannel) key.channel()).accept();
      if (channel != null) {
        accept(channel, (Listener) key.attachment());
      }
    } catch (IOException e) {
      log.warn("a process could not be let in: {}", e.getMessage());
      key.interestOps(0); // otherwise it would be retried at once, endlessly
      paused = key;
      resumeNs = clock.nanoTime() + PAUSE_NS;
    }
  }

  private void accept(SocketChannel channel, Listener listener) throws IOException {
    boolean added = false;
    UnreadFiles.Connection unread = null;
    try {
      unread = listener.unread == null ? null : listener.unread.accepted();
      Link.Handler handler = listener.accept.apply(channel);
      added = handler != null && add(channel, unread, handler, Peer.STRANGER) != null;
    } finally {
      if (!added && listener.unread != null && unread == null) {
        closes.unregistered(channel); // it may contain files
      } else if (!added) {
        closes.close(channel, unread);
      }
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
    links.forEach(link -> link.close("this process has closed it"));
    runTasks();
    links.forEach(Link::closeChannel); // those that were abandoned
    try {
      selector.close();
    } catch (IOException e) {
      log.debug("a selector could not be closed", e);
    }
    closes.ended();
  }

  SlowCloses closes() {
    return closes;
  }

  /**
   * Closes a connection that was accepted elsewhere. On any thread.
   *
   * @throws IOException if it cannot be closed
   */
  public void turnAway(SocketChannel channel) throws IOException {
    if (findsFiles) {
      closes.unregistered(channel);
    } else {
      channel.close();
    }
  }

  /** Closes all links at once, even if the thread hangs. On any thread. */
  public void abandon() {
    close();
    links.forEach(Link::abandon);
  }

  /** Closes all links and ends the thread soon. A second call does nothing. */
  @Override
  public void close() {
    closed = true;
    selector.wakeup();
  }

  /**
   * Waits until the thread has ended. Call {@link #close} or {@link #abandon} first.
   *
   * @param deadlineNs when to stop waiting
   */
  public void awaitEnd(long deadlineNs) {
    ThreadEnd.await(thread, clock, deadlineNs);
  }
}
