package dev.vgpu.core.seat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Queue;
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

  private static final int READ_BYTES = 16 << 10;

  private final SocketChannel channel;
  private final LinkLoop loop;
  private final Handler handler;
  private final int mostQueuedBytes;
  private final ReentrantLock sending = new ReentrantLock();
  private final Queue<ByteBuffer> queue = new ArrayDeque<>();
  private int queuedBytes;
  private volatile int mostFrameBytes;
  private volatile @Nullable String closedBecause;

  // Confined to the loop's thread.
  private ByteBuffer received = ByteBuffer.allocate(READ_BYTES);
  private boolean closedTold;
  @Nullable SelectionKey key;

  Link(SocketChannel channel, LinkLoop loop, Handler handler, int mostFrameBytes, int mostQueued) {
    this.channel = channel;
    this.loop = loop;
    this.handler = handler;
    this.mostFrameBytes = mostFrameBytes;
    this.mostQueuedBytes = mostQueued;
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
        queue.add(bytes);
        queuedBytes += bytes.remaining();
        if (queuedBytes > mostQueuedBytes) {
          close("the other side does not read: queuedBytes=" + queuedBytes);
        } else {
          loop.writeLater(this);
        }
      }
    } catch (IOException e) {
      close("writing failed: " + e.getMessage());
    } finally {
      sending.unlock();
    }
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

  SocketChannel channel() {
    return channel;
  }

  void register(SelectionKey registered) {
    key = registered;
  }

  /** Reads what is there and hands on what is whole. */
  void read() {
    try {
      int got = channel.read(received);
      if (got < 0) {
        close("the other side has closed it");
        return;
      }
      received.flip();
      boolean whole = true;
      while (whole && !isClosed()) {
        whole = takeFrame();
      }
      received.compact();
    } catch (IOException e) {
      close("reading failed: " + e.getMessage());
    } catch (MalformedMessageException | IllegalArgumentException | ArithmeticException e) {
      close("it sent what makes no sense: " + e.getMessage());
    }
  }

  private boolean takeFrame() {
    if (received.remaining() < Integer.BYTES) {
      return false;
    }
    int length = received.getInt(received.position());
    if (length < 0 || length > mostFrameBytes) {
      throw new MalformedMessageException("a frame is not within bounds: bytes=" + length);
    }
    if (received.remaining() < Integer.BYTES + length) {
      makeRoom(Integer.BYTES + length);
      return false;
    }
    received.getInt();
    byte[] frame = new byte[length];
    received.get(frame);
    handler.received(this, Message.decode(frame));
    return true;
  }

  private void makeRoom(int bytes) {
    if (received.capacity() < bytes) {
      ByteBuffer larger = ByteBuffer.allocate(Math.max(bytes, 2 * received.capacity()));
      larger.put(received);
      received = larger.flip();
    }
  }

  /**
   * Bounds what is taken from now on.
   *
   * @param bytes of one message
   */
  public void mostFrameBytes(int bytes) {
    mostFrameBytes = bytes;
  }

  /** Writes what is queued; whether some is left. */
  boolean write() {
    sending.lock();
    try {
      for (ByteBuffer next = queue.peek(); next != null; next = queue.peek()) {
        queuedBytes -= channel.write(next);
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
      try {
        channel.close();
      } catch (IOException e) {
        // Nothing is lost: it is not used any more.
      }
      String reason = closedBecause;
      handler.closed(this, reason == null ? "closed" : reason);
    }
  }
}
