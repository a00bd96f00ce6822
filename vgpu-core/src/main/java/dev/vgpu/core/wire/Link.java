package dev.vgpu.core.wire;

import dev.vgpu.files.SlowCloses;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A connection between two processes of a node. Sending never blocks: bytes that the other side
 * does not take at once are queued up to a limit, beyond which the link is closed. Messages arrive
 * on the thread of the {@link LinkLoop}. Thread-safe, except where stated.
 */
public final class Link {
  /** Receives the messages, on the loop's thread. Must not block. */
  public interface Handler {
    /**
     * Called for each message.
     *
     * @param link the link
     * @param message the message
     * @throws MalformedMessageException if the message makes no sense; the link is then closed
     */
    void received(Link link, Message message);

    /**
     * Called once, when the link is closed: by either side, by a failure, or because of a message.
     *
     * @param link the link
     * @param reason why
     */
    void closed(Link link, String reason);
  }

  /** The initial size of the receive buffer, which bounds a read before the next link's turn. */
  private static final int READ_BYTES = 2 << 10;

  /** If the other side leaves more than this unread, the next message closes the link. */
  private static final long MOST_UNREAD_BYTES = 4 << 20;

  /** If the other side leaves more than this unread, news is not sent to it. */
  private static final long MOST_UNREAD_FOR_NEWS_BYTES = 256 << 10;

  private final SocketChannel channel;

  /** Looks for files before they are read; null if the kernel refuses them. */
  private final UnreadFiles.@Nullable Connection unread;

  private final LinkLoop loop;
  private final Handler handler;
  private final ReentrantLock sending = new ReentrantLock();
  private final Queue<ByteBuffer> queue = new ArrayDeque<>();
  private final AtomicLong queuedBytes = new AtomicLong();
  private final AtomicLong held = new AtomicLong();
  private volatile LinkLoop.Peer peer;
  private volatile @Nullable String closedBecause;

  // Confined to the loop's thread.
  private ByteBuffer received = ByteBuffer.allocate(READ_BYTES);
  private boolean closedTold;
  private boolean paused;
  private boolean writes;
  private @Nullable SelectionKey key;

  Link(
      SocketChannel channel,
      UnreadFiles.@Nullable Connection unread,
      LinkLoop loop,
      Handler handler,
      LinkLoop.Peer peer) {
    this.channel = channel;
    this.unread = unread;
    this.loop = loop;
    this.handler = handler;
    this.peer = peer;
  }

  /** {@return whether it is closed} */
  public boolean isClosed() {
    return closedBecause != null;
  }

  /**
   * Sends a message. If the link is closed, drops it.
   *
   * @param message the message
   */
  public void send(Message message) {
    ByteBuffer bytes = message.encode();
    sending.lock();
    try {
      if (isClosed()) {
        return;
      }
      if (queue.isEmpty()) {
        // Does not block, so an interrupt of this thread does not affect it.
        channel.write(bytes);
      }
      if (bytes.hasRemaining()) {
        if (queuedBytes.get() > MOST_UNREAD_BYTES) {
          close("the other side does not read: queuedBytes=" + queuedBytes);
          return;
        }
        queue.add(bytes);
        queued(bytes.remaining());
        loop.performFor(this, this::writeAndWait);
      }
    } catch (IOException e) {
      close("writing failed: " + e.getMessage());
    } finally {
      sending.unlock();
    }
  }

  /**
   * Sends a message that the other side can do without, unless it leaves much unread already.
   *
   * @param message the message
   */
  public void sendNews(Message message) {
    if (queuedBytes.get() <= MOST_UNREAD_FOR_NEWS_BYTES) {
      send(message);
    }
  }

  /**
   * Adjusts the number of bytes that this process holds for the other side.
   *
   * @param bytes the change; negative if less is held
   */
  public void hold(long bytes) {
    held.addAndGet(bytes);
    loop.hold(bytes);
  }

  long heldBytes() {
    return held.get();
  }

  /**
   * Closes the link. The handler is called on the loop's thread.
   *
   * @param reason why
   */
  public void close(String reason) {
    if (closedBecause == null) {
      closedBecause = reason;
      loop.closeLater(this);
    }
  }

  // ---- on the loop's thread

  /**
   * Ends the connection at once, without calling the handler. On any thread. If the socket may
   * contain files, the loop's thread closes it when it ends.
   */
  void abandon() {
    closedBecause = "this process serves nobody any more";
    if (unread != null) {
      SlowCloses.shutDown(channel);
      return;
    }
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is lost: the socket is not used any more.
    }
  }

  /** {@return the socket, for example to ask the kernel for the peer's credentials} */
  public SocketChannel channel() {
    return channel;
  }

  void register(SelectionKey registered) {
    key = registered;
    awaitMore();
  }

  private void awaitMore() {
    SelectionKey at = key;
    if (at != null && at.isValid()) {
      at.interestOps((paused ? 0 : SelectionKey.OP_READ) | (writes ? SelectionKey.OP_WRITE : 0));
    }
  }

  /** Stops receiving messages for now. On the loop's thread. */
  public void pause() {
    paused = true;
    awaitMore();
  }

  /** Receives messages again. On any thread. */
  public void resume() {
    loop.performFor(this, this::goOn);
  }

  private void goOn() {
    if (paused && !closedTold) {
      paused = false;
      take();
      awaitMore();
    }
  }

  /** Reads the available bytes and passes complete messages on. */
  void read() {
    try {
      int most = unread == null ? received.remaining() : unread.readable(received.remaining());
      if (most == UnreadFiles.FILES) {
        close("it passes open files");
      } else if (most != UnreadFiles.NOTHING) {
        read(most);
      }
    } catch (IOException e) {
      close("reading failed: " + e.getMessage());
    }
  }

  private void read(int most) throws IOException {
    received.limit(received.position() + most);
    int got = channel.read(received);
    received.limit(received.capacity());
    if (got < 0 || most == 0) {
      close("the other side has closed it");
    } else {
      take();
    }
  }

  private void take() {
    try {
      received.flip();
      boolean whole = true;
      while (whole && !isClosed() && !paused) {
        whole = takeFrame();
      }
      keepRest();
    } catch (MalformedMessageException | IllegalArgumentException | ArithmeticException e) {
      close("malformed message: " + e.getMessage());
    }
  }

  private boolean takeFrame() {
    if (received.remaining() < Integer.BYTES) {
      return false;
    }
    int length = received.getInt(received.position());
    if (length < 0 || length > peer.mostFrameBytes) {
      throw new MalformedMessageException("a frame is not within bounds: bytes=" + length);
    }
    if (received.remaining() < Integer.BYTES + length) {
      return false;
    }
    received.getInt();
    byte[] frame = new byte[length];
    received.get(frame);
    handler.received(this, Message.decode(frame, peer.mostPairs));
    return true;
  }

  /** The buffer grows as bytes arrive, not by the announced length, and shrinks when it can. */
  private void keepRest() {
    int rest = received.remaining();
    int capacity = received.capacity();
    if (rest == capacity) {
      int frame = Integer.BYTES + received.getInt(received.position());
      resize(paused ? capacity : Math.min(2 * capacity, Math.max(frame, READ_BYTES)));
    } else if (rest < READ_BYTES && capacity > READ_BYTES) {
      resize(READ_BYTES);
    } else {
      received.compact();
    }
  }

  private void resize(int bytes) {
    hold(bytes - received.capacity());
    received = ByteBuffer.allocate(bytes).put(received);
  }

  /**
   * Sets the kind of peer.
   *
   * @param known determines the limits for messages from now on
   */
  public void peer(LinkLoop.Peer known) {
    peer = known;
  }

  /** Writes the queue. If some is left, continues when the other side has read. */
  void writeAndWait() {
    boolean left = write();
    if (left != writes) {
      writes = left;
      awaitMore();
    }
  }

  private boolean write() {
    sending.lock();
    try {
      for (ByteBuffer next = queue.peek(); next != null; next = queue.peek()) {
        queued(-channel.write(next));
        if (next.hasRemaining()) {
          return true;
        }
        queue.poll();
      }
      return false;
    } catch (IOException e) {
      close("writing failed: " + e.getMessage());
      return false;
    } finally {
      sending.unlock();
    }
  }

  /** Calls the handler once, to say that the link is closed. */
  void tellClosed() {
    if (!closedTold) {
      closedTold = true;
      boolean ignored = write(); // the last messages, for example the reason
      forget();
      closeChannel();
      String reason = closedBecause;
      handler.closed(this, reason == null ? "closed" : reason);
    }
  }

  void closeChannel() {
    loop.closes().close(channel, unread);
  }

  private void queued(long bytes) {
    queuedBytes.addAndGet(bytes);
    hold(bytes);
  }

  private void forget() {
    sending.lock();
    try {
      queue.clear();
      queued(-queuedBytes.get());
    } finally {
      sending.unlock();
    }
    hold(READ_BYTES - received.capacity());
    received = ByteBuffer.allocate(0);
  }
}
