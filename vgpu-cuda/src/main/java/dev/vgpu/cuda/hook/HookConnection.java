package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_BYE;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_HELLO;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_IDLE;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_WANT;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_BAD;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_FULL;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_NO_LEASE;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_VERSION;

import dev.vgpu.cuda.layout.ShmLayout.Message;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/**
 * The socket of one process. All input is bounded and checked. A process that sends anything else
 * loses its connection; other processes are not affected. Confined to the server's thread.
 */
final class HookConnection implements SeatSlot.Socket {
  /** Messages read per turn, so that one connection cannot delay the others. */
  private static final int MESSAGES_AT_A_TIME = 16;

  /** More messages per window than any process has reason to send. */
  private static final int MOST_MESSAGES = 10_000;

  private static final long WINDOW_NS = 100_000_000;

  final SocketChannel channel;

  /** Looks for files before they are read; null if the kernel refuses them. */
  final UnreadFiles.@Nullable Connection unread;

  final long openedNs;

  /** Whether its HELLO is still to come. */
  boolean isStranger = true;

  private final HookServer server;
  private final ByteBuffer input = ByteBuffer.allocateDirect(MESSAGES_AT_A_TIME * Message.BYTES);
  private @Nullable HookLease lease;
  private @Nullable SeatSlot slot;
  private long windowNs;
  private int messages;

  HookConnection(
      SocketChannel channel,
      UnreadFiles.@Nullable Connection unread,
      HookServer server,
      long nowNs) {
    this.channel = channel;
    this.unread = unread;
    this.server = server;
    this.openedNs = nowNs;
    this.windowNs = nowNs;
  }

  boolean isAttached() {
    return lease != null;
  }

  /** Makes this the socket of a process's slot. */
  void attached(HookLease lease, SeatSlot slot) {
    this.lease = lease;
    this.slot = slot;
  }

  @Override
  public void detached() {
    lease = null;
    slot = null;
  }

  @Override
  public void close() {
    server.close(this);
  }

  /**
   * Reads and handles the input that has arrived.
   *
   * @return why the connection must be closed; null if it stays open
   * @throws IOException if the connection is broken
   */
  @Nullable String read(long nowNs) throws IOException {
    UnreadFiles.Connection seen = unread;
    if (seen != null) {
      int readable = seen.readable(input.remaining());
      if (readable == UnreadFiles.FILES) {
        return "it passes open files";
      } else if (readable == UnreadFiles.NOTHING) {
        return null;
      }
      input.limit(input.position() + readable);
    }
    int read = channel.read(input);
    input.limit(input.capacity());
    if (read < 0 || (seen != null && read == 0) || hasOnlyAsked()) {
      return "closed by the process";
    }
    if (nowNs - windowNs > WINDOW_NS) {
      windowNs = nowNs;
      messages = 0;
    }
    input.flip();
    String reason = null;
    while (reason == null && input.remaining() >= Message.BYTES) {
      messages++;
      HookMessage message = HookMessage.read(input);
      input.position(input.position() + Message.BYTES);
      if (messages > MOST_MESSAGES) {
        reason = "it floods the seat";
      } else if (!isOutdated(message)) {
        reason = receive(message);
      }
    }
    input.compact();
    return reason;
  }

  /**
   * Whether all that has come is a HELLO, and the end of the connection: the process has given up
   * waiting for the answer. After a change of the seat on a busy machine, many may have done that,
   * and those that still wait are behind them.
   */
  private boolean hasOnlyAsked() throws IOException {
    if (lease != null || input.position() != Message.BYTES) {
      return false;
    }
    return unread == null
        ? channel.read(input) < 0
        : unread.readable(input.remaining()) == 0; // a file is found when it is read
  }

  /** Whether it says that the process has work, or none, and the next message says it anew. */
  private boolean isOutdated(HookMessage message) {
    return lease != null
        && tellsWork(message)
        && input.remaining() >= Message.BYTES
        && tellsWork(HookMessage.read(input));
  }

  private static boolean tellsWork(HookMessage message) {
    return message.version() == MESSAGE_VERSION
        && (message.type() == MESSAGE_WANT || message.type() == MESSAGE_IDLE);
  }

  private @Nullable String receive(HookMessage message) throws IOException {
    HookLease known = lease;
    SeatSlot mine = slot;
    if (message.type() == MESSAGE_HELLO && known == null) {
      if (server.isStillToCome(message.lease())) {
        // With no answer, the process tries again within milliseconds.
        return "its virtual GPU is not ready yet";
      }
      HookMessage answer = answer(message);
      if (channel.write(answer.bytes()) != Message.BYTES) {
        return "it did not read the answer";
      }
      HookLease welcomed = lease;
      SeatSlot given = slot;
      if (welcomed == null || given == null) {
        return "refused: " + answer.text();
      }
      welcomed.announce(given);
      return null;
    }
    if (known == null || mine == null) {
      return "it did not begin with a HELLO";
    }
    if (message.version() != MESSAGE_VERSION) {
      return "a message of version " + message.version();
    }
    switch (message.type()) {
      case MESSAGE_WANT -> known.heard(mine, true);
      case MESSAGE_IDLE -> known.heard(mine, false);
      case MESSAGE_BYE -> {
        known.left(mine);
        detached();
        return "it has left its virtual GPU";
      }
      default -> {
        return "a message of no known type " + message.type();
      }
    }
    return null;
  }

  private HookMessage answer(HookMessage hello) throws IOException {
    if (hello.version() != MESSAGE_VERSION || hello.layoutMajor() != LAYOUT_MAJOR) {
      return HookMessage.welcome(
          NO_SLOT,
          STATUS_VERSION,
          "the hook speaks version "
              + Integer.toUnsignedString(hello.version())
              + " layout "
              + Integer.toUnsignedString(hello.layoutMajor())
              + ", the seat "
              + MESSAGE_VERSION
              + " layout "
              + LAYOUT_MAJOR);
    }
    HookLease named = server.lease(hello.lease());
    if (named == null) {
      return HookMessage.welcome(NO_SLOT, STATUS_NO_LEASE, "no such virtual GPU");
    }
    if (!server.isOf(channel, named)) {
      return HookMessage.welcome(
          NO_SLOT, STATUS_BAD, "the program runs as another user than its virtual GPU's");
    }
    if (!server.hasRoom(named, hello.slot() == NO_SLOT)) {
      return HookMessage.welcome(
          NO_SLOT,
          STATUS_FULL,
          "too many programs for the open files that the seat's process may have; raise its limit"
              + " (ulimit -n)");
    }
    return named.hello(hello, this);
  }

  /** Releases its slot, whether the process is dead or not. */
  void closed() {
    HookLease known = lease;
    SeatSlot mine = slot;
    detached();
    if (known != null && mine != null) {
      known.disconnected(mine, this);
    }
  }
}
