package dev.vgpu.core.wire;

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
 * One connection between two processes of a node. Sending never blocks: what the other side does
 * not take at once is kept, up to a bound, and beyond that the connection is closed. Messages
 * arrive on the thread of the {@link LinkLoop}. Safe for use by several threads.
 */
public final class Link {
  /** Is told what arrives, on the loop's thread; must not block. */
  public interface Handler {
    /**
     * A message has come.
     *
     * @param link from where
     * @param message what it says
     * @throws MalformedMessageException if it makes no sense; the link is closed
     */
    void received(Link link, Message message);

    /**
     * The link is closed: by the other side, by its death, or because of what it sent. Told once.
     *
     * @param link which one
     * @param reason why
     */
    void closed(Link link, String reason);
  }

  /** As much is read of one link before the next one's turn comes. */
  private static final int READ_BYTES = 2 << 10;

  /** If the other side has more to read than this, the next message closes the link. */
  private static final long MOST_UNREAD_BYTES = 4 << 20;

  /** If the other side has more to read than this, news is not sent to it. */
  private static final long MOST_UNREAD_FOR_NEWS_BYTES = 256 << 10;

  private final SocketChannel channel;
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

  Link(SocketChannel channel, LinkLoop loop, Handler handler, LinkLoop.Peer peer) {
    this.channel = channel;
    this.loop = loop;
    this.handler = handler;
    this.peer = peer;
  }

  /** {@return whether it is closed} */
  public boolean isClosed() {
    return closedBecause != null;
  }

  /**
   * Sends a message, or drops it where the link is closed.
   *
   * @param message what to say
   */
  public void send(Message message) {
    ByteBuffer bytes = message.encode();
    sending.lock();
    try {
      if (isClosed()) {
        return;
      }
      if (queue.isEmpty()) {
        // Does not block, and so is not disturbed by an interrupt of this thread.
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
   * Sends a message that the other side can miss, unless that has much to read already.
   *
   * @param message what to say
   */
  public void sendNews(Message message) {
    if (queuedBytes.get() <= MOST_UNREAD_FOR_NEWS_BYTES) {
      send(message);
    }
  }

  /**
   * Notes that this process holds something for the other side, or does no more.
   *
   * @param bytes how much more; negative: less
   */
  public void hold(long bytes) {
    held.addAndGet(bytes);
    loop.hold(bytes);
  }

  long heldBytes() {
    return held.get();
  }

  /**
   * Closes it. The handler is told on the loop's thread.
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

  /** Closes it at once, and tells nobody here. On any thread. */
  void abandon() {
    closedBecause = "this process serves nobody any more";
    try {
      channel.close();
    } catch (IOException e) {
      // Nothing is lost: it is not used any more.
    }
  }

  /** {@return the socket, for what the kernel knows of the other side} */
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

  /** Takes no more messages for now. On the loop's thread. */
  public void pause() {
    paused = true;
    awaitMore();
  }

  /** Takes messages again. On any thread. */
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

  /** Reads what is there and hands on what is whole. */
  void read() {
    try {
      int got = channel.read(received);
      if (got < 0) {
        close("the other side has closed it");
        return;
      }
      take();
    } catch (IOException e) {
      close("reading failed: " + e.getMessage());
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
      close("it sent what makes no sense: " + e.getMessage());
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

  /** Makes room as bytes come, not as they are announced; and no room without need. */
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
   * Says who is on the other side.
   *
   * @param known decides what is taken from now on
   */
  public void peer(LinkLoop.Peer known) {
    peer = known;
  }

  /** Writes what is queued, and what is left when the other side has read some. */
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

  /** Tells the handler that it is closed, once. */
  void tellClosed() {
    if (!closedTold) {
      closedTold = true;
      boolean ignored = write(); // what was said last, for example why
      forget();
      try {
        channel.close();
      } catch (IOException e) {
        // Nothing is lost: it is not used any more.
      }
      String reason = closedBecause;
      handler.closed(this, reason == null ? "closed" : reason);
    }
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
