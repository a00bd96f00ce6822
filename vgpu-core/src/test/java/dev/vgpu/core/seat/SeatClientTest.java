package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.MemorySize;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.LeaseOwner;
import dev.vgpu.core.node.LocalClaim;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.core.wire.LinkLoop;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A client does not learn whether the seat has resized its lease. */
@Timeout(60)
class SeatClientTest {
  private static final long WELCOME_NS = 30_000_000_000L;

  private final List<Pools.TestGpu> gpus = Pools.gpus(1);
  private final Node node =
      new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
  private Path directory;
  private GpuPool holder;
  private LinkLoop loop;
  private SeatClient client;
  private Lease lease;

  private static VirtualGpuRequest of(int mebibytes) {
    return VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(mebibytes)).build();
  }

  @BeforeEach
  void acquire() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder =
        GpuPool.open(
            GpuPoolOptions.builder().runDirectory(directory).gpus(List.copyOf(gpus)).build());
    loop = new LinkLoop(NanoClock.SYSTEM);
    client = connect();
    node.manage(client.gpus(), client.settings());
    node.turns().forEach(turns -> turns.connect(client));
    lease = client.acquire(new LocalClaim(of(100), node, mock(LeaseOwner.class), null));
  }

  private SeatClient connect() throws IOException {
    return SeatClient.connect(
        node, loop, directory.resolve("seat.sock"), Optional.empty(), WELCOME_NS, lost -> {});
  }

  @AfterEach
  void close() throws IOException {
    loop.close();
    holder.close();
    node.shutDown();
    node.awaitEnd();
    Pools.delete(directory);
  }

  /** Resizes the lease at a seat that is gone, and claims it at the next. */
  private void resizeInVain(int mebibytes) throws Exception {
    client.close();
    Pools.await(client::isLost);
    assertThatThrownBy(() -> client.resize(lease, of(mebibytes)))
        .isInstanceOf(SeatLostException.class);
    client = connect();
    assertThat(client.claim(lease)).isNotNull();
    client.claimed();
  }

  private boolean isBookedWith(int mebibytes) {
    return holder.leases().stream()
        .map(GpuLease::request)
        .anyMatch(request -> isSize(request, mebibytes));
  }

  private static boolean isSize(VirtualGpuRequest request, int mebibytes) {
    return request.memory().equals(MemorySize.ofMebibytes(mebibytes));
  }

  @Test
  void theSeatTakesTheSizeOfTheProcess() throws Exception {
    lease.request(of(80)); // as if the seat had resized it to 100, and its answer were lost
    resizeInVain(100);
    Pools.await(() -> isBookedWith(80));
    Pools.await(() -> !lease.isSizeUnclear());
    assertThat(isSize(lease.request(), 80)).isTrue();
  }

  @Test
  void theProcessTakesTheSizeOfTheSeatIfOthersHaveTheRest() throws Exception {
    try (VirtualGpu other = holder.acquire(of(900))) {
      lease.request(of(200));
      resizeInVain(100);
      Pools.await(() -> isSize(lease.request(), 100));
      assertThat(isBookedWith(100)).isTrue();
      assertThat(other.isClosed()).isFalse();
    }
  }
}
