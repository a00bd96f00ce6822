package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.cuda.layout.ShmLayout.Message;
import dev.vgpu.cuda.pages.PassedFiles;
import dev.vgpu.cuda.pages.Wake;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.files.FileAccess;
import dev.vgpu.testing.KernelVersion;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The socket where programs find the seat. */
class HookServerTest {
  /** Wakes nobody. */
  private static final Wake NOBODY = (page, offset) -> {};

  @TempDir private Path run;
  private Path socket;

  @BeforeEach
  void name() {
    socket = run.resolve("hook.sock");
  }

  private HookServer server() throws IOException {
    HookServer server = new HookServer(socket, FileAccess.of(run), NanoClock.SYSTEM, NOBODY);
    server.start();
    return server;
  }

  @Test
  void nothingIsLeftOfASeatThatEnds() throws IOException {
    server().close();
    try (Stream<Path> left = Files.list(run)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void answersThatItServesOnceItDoes() throws Exception {
    CompletableFuture<Thread> answered = new CompletableFuture<>();
    try (HookServer server = new HookServer(socket, FileAccess.of(run), NanoClock.SYSTEM, NOBODY)) {
      server.whenServing(() -> answered.complete(Thread.currentThread()));
      assertThat(answered).isNotDone();
      server.start();
      assertThat(answered.get(30, TimeUnit.SECONDS).getName()).isEqualTo("vgpu-hook-seat");
    }
  }

  @Test
  void threadThatSleepsIsNotWokenToAnswer() throws Exception {
    try (HookServer server = server()) {
      Thread by = null;
      while (by != Thread.currentThread()) { // until it sleeps
        CompletableFuture<Thread> answered = new CompletableFuture<>();
        server.whenServing(() -> answered.complete(Thread.currentThread()));
        by = answered.get(30, TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void socketThatSomebodyRemovedIsClosedAllTheSame() throws IOException {
    HookServer server = server();
    Path link = Files.createLink(run.resolve("link"), socket);
    Files.delete(socket);
    server.close();
    assertThatThrownBy(() -> SocketChannel.open(UnixDomainSocketAddress.of(link)).close())
        .isInstanceOf(ConnectException.class);
  }

  /** The kernel would end the connection in the server's thread, which would wait for it. */
  @Test
  void connectionThatLingersIsNotTakenFromAProgram() throws Exception {
    assumeTrue(KernelVersion.isAtLeast(6, 16), "older kernels cannot refuse it");
    try (HookServer server = server();
        Passer passer = new Passer(socket)) {
      assertThat(passer.said()).isEqualTo("refused\n");
      assertServes(server);
    }
  }

  /** The server as on a kernel that cannot refuse files. It does not serve yet. */
  private HookServer unprotected() throws IOException {
    return new HookServer(socket, FileAccess.of(run), NanoClock.SYSTEM, NOBODY, PassedFiles::find);
  }

  private static void assertServes(HookServer server) throws Exception {
    CompletableFuture<Thread> answered = new CompletableFuture<>();
    server.whenServing(() -> answered.complete(Thread.currentThread()));
    assertThat(answered.get(30, TimeUnit.SECONDS)).isNotNull();
  }

  /** Returns as soon as the server has closed a new connection, since it does not understand it. */
  private void assertReads() throws IOException {
    try (SocketChannel program = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      int written = program.write(ByteBuffer.allocate(Message.BYTES));
      assertThat(written).isEqualTo(Message.BYTES);
      assertThat(program.read(ByteBuffer.allocate(1))).isNegative();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 16 * Message.BYTES, 17 * Message.BYTES})
  @Timeout(30)
  void programThatPassesAConnectionThatLingersHoldsUpNobody(int before) throws Exception {
    try (HookServer server = unprotected();
        Passer first = new Passer(socket, before);
        Passer second = new Passer(socket, before)) {
      assertThat(first.said()).isEqualTo("passed\n"); // nobody else has that connection now
      assertThat(second.said()).isEqualTo("passed\n");
      server.start();
      assertReads();
      assertServes(server);
      assertReads();
    }
  }

  @Test
  @Timeout(30)
  void connectionThatLingersDoesNotHoldUpTheSeatsEnd() throws Exception {
    HookServer server = unprotected();
    try (Passer passer = new Passer(socket)) {
      assertThat(passer.said()).isEqualTo("passed\n");
      server.close();
    }
    assertThat(socket).doesNotExist();
  }

  /** Passes a TCP connection to the server whose end takes longer than the tests. */
  private final class Passer implements AutoCloseable {
    private final Process process;

    Passer(Path socket) throws Exception {
      this(socket, 0);
    }

    Passer(Path socket, int before) throws Exception {
      Path program = run.resolve("pass");
      Path source = Path.of("../vgpu-core/src/test/resources/pass_descriptors.c");
      if (!Files.exists(program)) {
        Process compiler =
            new ProcessBuilder("cc", "-o", program.toString(), source.toString())
                .inheritIO()
                .start();
        assertThat(compiler.waitFor()).isZero();
      }
      process =
          new ProcessBuilder(program.toString(), socket.toString(), "120", Integer.toString(before))
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      try (OutputStream to = process.getOutputStream()) {
        to.write(0);
      }
    }

    String said() throws IOException {
      return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
      process.destroyForcibly();
    }
  }

  @Test
  void seatThatWasGivenUpEndsLateAndLeavesTheNextOneItsSocket() throws IOException {
    HookServer givenUp = server();
    HookServer next = server();
    givenUp.close();
    try (SocketChannel program = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      assertThat(program.isConnected()).isTrue();
    }
    next.close();
    assertThat(socket).doesNotExist();
  }
}
