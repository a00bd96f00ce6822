package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_HELLO;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.cuda.layout.ShmLayout.Message;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A process asks for its slot with a HELLO, and may give up before the seat has read it. */
class HookConnectionTest {
  private final HookServer server = mock(HookServer.class);
  @TempDir private Path directory;
  private SocketChannel process;
  private SocketChannel seat;

  @BeforeEach
  void ask() throws IOException {
    UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.resolve("socket"));
    try (ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      listener.bind(address);
      process = SocketChannel.open(address);
      seat = listener.accept();
    }
    seat.configureBlocking(false);
    HookMessage hello =
        new HookMessage(
            MESSAGE_HELLO, MESSAGE_VERSION, NO_SLOT, 0, 1, LAYOUT_MAJOR, 1, 1, "a-1", "secret");
    assertThat(process.write(hello.bytes())).isEqualTo(Message.BYTES);
  }

  @AfterEach
  void close() throws IOException {
    process.close();
    seat.close();
  }

  @Test
  void whoWaitsForTheAnswerGetsIt() throws IOException {
    assertThat(new HookConnection(seat, null, server, 0).read(0)).contains("no such virtual GPU");
    verify(server).lease("a-1");
  }

  @Test
  void whoHasGivenUpCostsTheOthersNoTime() throws IOException {
    process.close();
    assertThat(new HookConnection(seat, null, server, 0).read(0)).contains("closed");
    verify(server, never()).lease("a-1");
  }

  @Test
  void whoHasGivenUpIsSeenWhereFilesAreLookedFor() throws IOException {
    process.close();
    UnreadFiles.Connection unread = mock(UnreadFiles.Connection.class);
    when(unread.readable(anyInt())).thenReturn(Message.BYTES, 0);
    assertThat(new HookConnection(seat, unread, server, 0).read(0)).contains("closed");
    verify(server, never()).lease("a-1");
  }
}
