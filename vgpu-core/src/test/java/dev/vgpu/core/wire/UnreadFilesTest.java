package dev.vgpu.core.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.NanoClock;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.io.OutputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Peers pass TCP connections, where the kernel does not refuse them. The kernel would end each in
 * the thread that reads the message or closes the socket, which would wait for longer than the
 * tests may take.
 */
@Timeout(60)
class UnreadFilesTest {
  private static final int MOST_CLOSING_THREADS = 8;
  @TempDir private static Path programs;
  private static Path program;

  private final List<Process> passers = new ArrayList<>();
  private final Set<Thread> before = threads("vgpu-link");
  private final LinkLoop loop = loop();
  @TempDir private Path directory;
  private ServerSocketChannel server;

  /** Which connections contain files, in the order in which they are accepted: the first ones. */
  private static final class First implements UnreadFiles {
    private final int passers;
    private final int answer;
    private int accepted;

    First(int passers, int answer) {
      this.passers = passers;
      this.answer = answer;
    }

    @Override
    public Connection accepted() throws IOException {
      boolean passes = accepted++ < passers;
      return new Connection() {
        @Override
        public int readable(int most) {
          return passes ? answer : most;
        }

        @Override
        public boolean mayHoldFiles() {
          return passes;
        }

        @Override
        public void discard() {} // the close of the socket ends them
      };
    }
  }

  private static LinkLoop loop() {
    try {
      return new LinkLoop(NanoClock.SYSTEM);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @BeforeAll
  static void compile() throws Exception {
    program = programs.resolve("pass");
    String source = "src/test/resources/pass_descriptors.c";
    Process compiler =
        new ProcessBuilder("cc", "-o", program.toString(), source).inheritIO().start();
    assertThat(compiler.waitFor()).isZero();
  }

  @BeforeEach
  void bind() throws IOException {
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(directory.resolve("s")), 512);
  }

  @AfterEach
  void close() throws IOException {
    passers.forEach(Process::destroyForcibly); // the kernel then ends their connections
    loop.abandon();
    server.close();
  }

  /** Passes the last reference to such a connection, before anything is accepted or read. */
  private void pass(String socket, int times) throws IOException {
    for (int i = 0; i < times; i++) {
      Process passer =
          new ProcessBuilder(program.toString(), directory.resolve(socket).toString(), "300")
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      passers.add(passer);
      try (OutputStream to = passer.getOutputStream()) {
        to.write(0);
      }
      byte[] said = passer.getInputStream().readAllBytes();
      assertThat(new String(said, StandardCharsets.UTF_8)).isEqualTo("passed\n");
    }
  }

  private void listen(UnreadFiles unread) throws IOException {
    loop.listen(server, Optional.of(unread), channel -> new Pongs());
  }

  private static final class Pongs implements Link.Handler {
    @Override
    public void received(Link link, Message message) {
      link.send(new Message("pong"));
    }

    @Override
    public void closed(Link link, String reason) {}
  }

  private void assertAnswers() throws IOException {
    try (SocketChannel channel =
        SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("s")))) {
      int written = channel.write(new Message("ping").encode());
      assertThat(written).isPositive();
      ByteBuffer answer = ByteBuffer.allocate(new Message("pong").encode().remaining());
      while (answer.hasRemaining()) {
        assertThat(channel.read(answer)).isNotNegative();
      }
    }
  }

  private static Set<Thread> threads(String name) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(name))
        .collect(Collectors.toSet());
  }

  private void assertEnds() {
    loop.awaitEnd(NanoClock.SYSTEM.nanoTime() + 30_000_000_000L);
    assertThat(threads("vgpu-link")).isSubsetOf(before);
  }

  @Test
  void whoPassesFilesHoldsUpNobodyAndTakesFewThreads() throws Exception {
    pass("s", 2 * MOST_CLOSING_THREADS);
    listen(new First(passers.size(), UnreadFiles.FILES));
    for (int i = 0; i < 20; i++) {
      assertAnswers();
    }
    assertThat(threads("vgpu-link-close")).hasSizeBetween(1, MOST_CLOSING_THREADS);
    loop.close();
    assertEnds();
  }

  /** The loop has not read what they sent: its close ends the files. */
  @Test
  void filesThatNobodyHasReadDoNotHoldUpTheEnd() throws Exception {
    pass("s", 2);
    listen(new First(passers.size(), UnreadFiles.NOTHING));
    assertAnswers();
    loop.close();
    assertEnds();
  }

  @Test
  void filesThatNobodyHasReadDoNotHoldUpWhoAbandonsTheLoop() throws Exception {
    pass("s", 2);
    listen(new First(passers.size(), UnreadFiles.NOTHING));
    assertAnswers();
    loop.abandon();
    assertEnds();
  }

  /**
   * All programs start before anything is closed: a child that the JDK starts closes the sockets
   * that it inherits, and would wait for the files' end if its copy was the last one.
   */
  @Test
  void filesOfThoseThatAreTurnedAwayHoldUpNobody() throws Exception {
    pass("s", 2);
    int passing = passers.size();
    try (ServerSocketChannel other = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      other.bind(UnixDomainSocketAddress.of(directory.resolve("other")));
      pass("other", 1);
      List<SocketChannel> accepted = new ArrayList<>();
      loop.listen(
          server,
          Optional.of(new First(passing, UnreadFiles.FILES)),
          channel -> accepted.add(channel) && accepted.size() > passing ? new Pongs() : null);
      assertAnswers();
      loop.turnAway(other.accept());
    }
    assertAnswers();
  }
}
