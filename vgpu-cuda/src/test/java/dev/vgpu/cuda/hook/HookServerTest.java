package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.files.FileAccess;
import java.io.IOException;
import java.net.ConnectException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
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
  void answersThatItServes() throws Exception {
    CompletableFuture<Thread> answered = new CompletableFuture<>();
    try (HookServer server = server()) {
      server.whenServing(() -> answered.complete(Thread.currentThread()));
      assertThat(answered.get(30, TimeUnit.SECONDS).getName()).isEqualTo("vgpu-hook-seat");
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
