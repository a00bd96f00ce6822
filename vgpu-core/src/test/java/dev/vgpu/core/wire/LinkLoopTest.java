package dev.vgpu.core.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.NanoClock;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Limits to what peers can make a process hold, and to the harm that they can do. */
@Timeout(60)
class LinkLoopTest {
  private final List<SocketChannel> channels = new ArrayList<>();
  private Path directory;
  private LinkLoop loop;
  private ServerSocketChannel server;

  /** Answers "ping"; fails or sends much on demand. */
  private static final class Answers implements Link.Handler {
    @Override
    public void received(Link link, Message message) {
      link.peer(LinkLoop.Peer.CLIENT);
      switch (message.type()) {
        case "no memory" -> throw new OutOfMemoryError("as a test wants it");
        case "no room" -> throw new StackOverflowError("as a test wants it");
        case "much" -> link.send(new Message("much").with("text", "x".repeat(20_000)));
        default -> link.send(new Message("pong"));
      }
    }

    @Override
    public void closed(Link link, String reason) {}
  }

  @BeforeEach
  void listen() throws IOException {
    directory = Files.createTempDirectory("vg");
    loop = new LinkLoop(NanoClock.SYSTEM);
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(directory.resolve("s")), 512);
    loop.listen(server, Optional.empty(), channel -> new Answers());
  }

  @AfterEach
  void close() throws IOException {
    for (SocketChannel channel : channels) {
      channel.close();
    }
    loop.close();
    server.close();
    Files.deleteIfExists(directory.resolve("s"));
    Files.delete(directory);
  }

  private SocketChannel connect() throws IOException {
    SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("s")));
    channels.add(channel);
    return channel;
  }

  private static void say(SocketChannel channel, String type) throws IOException {
    channel.write(new Message(type).encode());
  }

  private static void assertAnswers(SocketChannel channel) throws IOException {
    say(channel, "ping");
    ByteBuffer answer = ByteBuffer.allocate(new Message("pong").encode().remaining());
    while (answer.hasRemaining()) {
      assertThat(channel.read(answer)).isNotNegative();
    }
  }

  private static void awaitEnd(SocketChannel channel) {
    try {
      ByteBuffer bytes = ByteBuffer.allocate(64 << 10);
      while (channel.read(bytes.clear()) >= 0) {
        Thread.onSpinWait();
      }
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  @Test
  void errorOnOneLinkClosesThatLinkAlone() throws Exception {
    SocketChannel other = connect();
    assertAnswers(other);
    for (String error : List.of("no memory", "no room")) {
      SocketChannel bad = connect();
      say(bad, error);
      awaitEnd(bad);
      assertAnswers(other);
    }
    assertAnswers(connect());
  }

  @Test
  void errorInWhatIsDueByTimeEndsNothing() throws Exception {
    loop.ticker(
        nowNs -> {
          throw new OutOfMemoryError("as a test wants it");
        });
    assertAnswers(connect());
  }

  @Test
  void announcedFrameTakesRoomOnlyAsItComes() throws Exception {
    for (int i = 0; i < 400; i++) {
      SocketChannel channel = connect();
      assertAnswers(channel);
      channel.write(ByteBuffer.allocate(8).putInt(256 << 10).putInt(0).flip());
    }
    assertAnswers(connect());
    assertThat(loop.heldBytes()).isZero();
  }

  @Test
  void halfSentFramesAreBoundedTogether() throws Exception {
    SocketChannel modest = connect();
    assertAnswers(modest);
    ByteBuffer half = ByteBuffer.allocate(200 << 10).putInt(0, 256 << 10);
    int closed = 0;
    for (int i = 0; i < 300; i++) {
      SocketChannel channel = connect();
      assertAnswers(channel);
      half.rewind();
      try {
        while (half.hasRemaining()) {
          channel.write(half);
        }
      } catch (IOException e) {
        closed++;
      }
      assertThat(loop.heldBytes()).isLessThan(LinkLoop.MOST_HELD_BYTES + (1 << 20));
    }
    assertAnswers(modest);
    System.out.println("held=" + loop.heldBytes() + " closed while they wrote=" + closed);
    for (SocketChannel channel : channels) {
      channel.close();
    }
    while (loop.heldBytes() > 0) {
      LockSupport.parkNanos(100_000);
    }
  }

  @Test
  void whoDoesNotReadIsClosedAndOthersAreAnswered() throws Exception {
    SocketChannel other = connect();
    assertAnswers(other);
    SocketChannel slow = connect();
    try {
      for (int i = 0; i < 1_000; i++) {
        say(slow, "much");
        assertThat(loop.heldBytes()).isLessThan(6 << 20);
      }
    } catch (IOException e) {
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
    }
    awaitEnd(slow);
    assertAnswers(other);
  }

  /** A process that is stopped lets nobody in. Whoever connects must not wait for it for ever. */
  @Test
  void whoConnectsDoesNotWaitBehindManyWhomAStoppedProcessDoesNotLetIn() throws Exception {
    Path stopped = directory.resolve("stopped");
    try (ServerSocketChannel full = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      full.bind(UnixDomainSocketAddress.of(stopped), 1);
      assertThatThrownBy(
              () -> {
                for (; ; ) {
                  Link ignored = loop.connect(stopped, new Answers());
                }
              })
          .isInstanceOf(IOException.class);
    } finally {
      Files.delete(stopped);
    }
  }

  @Test
  void nothingIsLeftOpenByALoopThatHasEnded() throws Exception {
    LinkLoop ended = new LinkLoop(NanoClock.SYSTEM);
    ended.close();
    ended.awaitEnd(NanoClock.SYSTEM.nanoTime() + 30_000_000_000L);
    try (ServerSocketChannel listens = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      Path socket = directory.resolve("listens");
      listens.bind(UnixDomainSocketAddress.of(socket));
      try {
        assertThatThrownBy(() -> ended.connect(socket, new Answers()))
            .isInstanceOf(IOException.class);
        try (SocketChannel peer = listens.accept()) {
          assertThat(peer.read(ByteBuffer.allocate(1))).isEqualTo(-1);
        }
      } finally {
        Files.delete(socket);
      }
    }
  }
}
