package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.files.FileAccess;
import dev.vgpu.testing.KernelVersion;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The socket where programs find the seat. */
class HookServerTest {
  @TempDir private Path run;
  private Path socket;

  @BeforeEach
  void name() {
    socket = run.resolve("hook.sock");
  }

  private HookServer server() throws IOException {
    HookServer server = new HookServer(socket, FileAccess.of(run), NanoClock.SYSTEM);
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
    try (HookServer server = new HookServer(socket, FileAccess.of(run), NanoClock.SYSTEM)) {
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
    Path program = run.resolve("pass");
    Path source = Path.of("../vgpu-core/src/test/resources/pass_descriptors.c");
    assertThat(
            new ProcessBuilder("cc", "-o", program.toString(), source.toString())
                .inheritIO()
                .start()
                .waitFor())
        .isZero();
    Process passes = null;
    try (HookServer server = server()) {
      passes = new ProcessBuilder(program.toString(), socket.toString(), "40").start();
      try (OutputStream to = passes.getOutputStream()) {
        to.write(0);
      }
      String said = new String(passes.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      CompletableFuture<Thread> answered = new CompletableFuture<>();
      server.whenServing(() -> answered.complete(Thread.currentThread()));
      assertThat(answered.get(30, TimeUnit.SECONDS)).isNotNull();
      assertThat(said).isEqualTo("refused\n");
    } finally {
      if (passes != null) {
        passes.destroyForcibly();
      }
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
