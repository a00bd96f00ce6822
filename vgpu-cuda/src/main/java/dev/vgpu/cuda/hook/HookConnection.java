package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_BYE;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_HELLO;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_IDLE;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_WANT;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_FULL;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_NO_LEASE;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_VERSION;

import dev.vgpu.cuda.layout.ShmLayout.Message;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/**
 * The socket of one process. What comes in is bounded and checked; whoever sends anything else
 * loses the connection, and nobody else notices. Confined to the server's thread.
 */
final class HookConnection {
  /** How many messages are read at a time, so that one connection cannot keep others waiting. */
  private static final int MESSAGES_AT_A_TIME = 16;

  /** More than a process can have reason to send. */
  private static final int MOST_MESSAGES = 10_000;

  private static final long WINDOW_NS = 100_000_000;

  final SocketChannel channel;
  final long openedNs;

  /** Whether its HELLO is still to come. */
  boolean isStranger = true;

  private final HookServer server;
  private final ByteBuffer input = ByteBuffer.allocateDirect(MESSAGES_AT_A_TIME * Message.BYTES);
  private @Nullable HookLease lease;
  private @Nullable SeatSlot slot;
  private long windowNs;
  private int messages;

  HookConnection(SocketChannel channel, HookServer server, long nowNs) {
    this.channel = channel;
    this.server = server;
    this.openedNs = nowNs;
    this.windowNs = nowNs;
  }

  boolean isAttached() {
    return lease != null;
  }

  /** It is the socket of a process's slot from now on. */
  void attached(HookLease lease, SeatSlot slot) {
    this.lease = lease;
    this.slot = slot;
  }

  /** The process has another socket now. */
  void detached() {
    lease = null;
    slot = null;
  }

  /**
   * Reads and does what has come in.
   *
   * @return why the connection has to be closed; null if it stays
   * @throws IOException if it is broken
   */
  @Nullable String read(long nowNs) throws IOException {
    int read = channel.read(input);
    if (read < 0) {
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
      reason = messages > MOST_MESSAGES ? "it floods the seat" : receive(HookMessage.read(input));
      input.position(input.position() + Message.BYTES);
    }
    input.compact();
    return reason;
  }

  private @Nullable String receive(HookMessage message) throws IOException {
    HookLease known = lease;
    SeatSlot mine = slot;
    if (message.type() == MESSAGE_HELLO && known == null) {
      if (server.isStillToCome(message.lease())) {
        // Without an answer, the process comes again in some milliseconds.
        return "its virtual GPU is not ready yet";
      }
      HookMessage answer = answer(message);
      if (channel.write(answer.bytes()) != Message.BYTES) {
        return "it does not take its answer";
      }
      HookLease welcomed = lease;
      if (welcomed == null) {
        return "refused: " + answer.text();
      }
      welcomed.announce();
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

  private HookMessage answer(HookMessage hello) {
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
    if (!server.hasRoom(named, hello.slot() == NO_SLOT)) {
      return HookMessage.welcome(
          NO_SLOT,
          STATUS_FULL,
          "too many programs for the open files that the seat's process may have; raise its limit"
              + " (ulimit -n)");
    }
    return named.hello(hello, this);
  }

  /** Lets go of its slot, whose process is dead or not. */
  void closed() {
    HookLease known = lease;
    SeatSlot mine = slot;
    detached();
    if (known != null && mine != null) {
      known.disconnected(mine, this);
    }
  }
}
