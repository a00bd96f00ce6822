package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.Frames;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that make no sense half-way leave nothing behind at the seat. */
@Timeout(60)
class HalfDoneRequestsTest extends TwoPools {
  private SocketChannel connect() throws IOException {
    SocketChannel channel =
        SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("seat.sock")));
    channel.write(Frames.hello("its own"));
    assertThat(Frames.read(channel)).contains("settings.");
    return channel;
  }

  private static VirtualGpuRequest whole() {
    return Pools.request(NEARLINE).memory(MemorySize.ofMebibytes(1000)).build();
  }

  private static void awaitEnd(SocketChannel channel) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(1 << 10);
    while (channel.read(bytes.clear()) >= 0) {
      Thread.onSpinWait();
    }
  }

  /** Otherwise nobody would end it when its process is dead. */
  @Test
  void aLeaseWhoseClaimIsCutShortStillEndsWithItsProcess() throws Exception {
    String id;
    try (SocketChannel owner = connect()) {
      owner.write(Frames.wanting("acquire", 2, "", gpus.get(0).id().value()));
      assertThat(Frames.read(owner)).contains("reply");
      id = holder.leases().get(0).id();
    }
    try (SocketChannel back = connect()) {
      back.write(Frames.of("type", "claim", "number", "2", "lease", id));
      awaitEnd(back);
    }
    try (SocketChannel last = connect()) {
      last.write(Frames.of("type", "claimed")); // it has no more leases
      Pools.await(() -> holder.leases().isEmpty());
    }
  }

  /** Otherwise the first could not be cancelled, and would count towards no limit. */
  @Test
  void aNumberThatIsGivenToTwoRequestsEndsBoth() throws Exception {
    try (VirtualGpu all = holder.acquire(whole());
        SocketChannel channel = connect()) {
      assertThat(all.id()).isNotEmpty();
      String gpu = gpus.get(0).id().value();
      for (int i = 0; i < 2; i++) {
        channel.write(Frames.wanting("enqueue", 2, "", gpu));
      }
      awaitEnd(channel);
    }
  }
}
