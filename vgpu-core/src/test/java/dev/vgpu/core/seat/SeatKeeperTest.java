package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.spy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.files.RunPlace;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process looks for the seat, is closed meanwhile, or waits for the one that has it. */
@Timeout(60)
class SeatKeeperTest {
  private static long links() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("vgpu-link"))
        .count();
  }

  private static SeatKeeper keeper(Node node, RunDirectory directory) throws IOException {
    return new SeatKeeper(
        node,
        directory,
        new Discovery(List.of()),
        List.of(),
        new GpuLocks(Map.of(), RunPlace.Origin.NAMED, directory.path().resolve("gpus")),
        Enforcements.none("as a test wants it"));
  }

  @Test
  void aProcessThatIsClosedWhileItLooksForTheSeatLeavesNoThread() throws Exception {
    Path path = Files.createTempDirectory("vg");
    long before = links();
    Node node =
        new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
    RunDirectory directory = spy(new RunDirectory(path, RunPlace.Origin.NAMED));
    CountDownLatch closed = new CountDownLatch(1);
    doAnswer(
            call -> {
              node.shutDown();
              closed.countDown();
              return call.callRealMethod();
            })
        .when(directory)
        .prepare();
    try (GpuPool holder =
        GpuPool.open(
            GpuPoolOptions.builder().runDirectory(path).gpus(List.copyOf(Pools.gpus(1))).build())) {
      assertThat(holder.leases()).isEmpty();
      keeper(node, directory).join();
    }
    closed.await();
    node.awaitEnd();
    Pools.await(() -> links() <= before);
    Pools.delete(path);
  }

  /** Proceeds by a tenth of a second with each reading of one thread, and has an event. */
  private static final class Clock implements NanoClock {
    private final Thread moves = Thread.currentThread();
    private final long eventNs;
    private final Runnable event;
    private volatile long nowNs;

    Clock(long eventNs, Runnable event) {
      this.eventNs = eventNs;
      this.event = event;
    }

    @Override
    public long nanoTime() {
      if (Thread.currentThread() == moves) {
        long nextNs = nowNs + 100_000_000;
        nowNs = nextNs;
        if (nextNs == eventNs) {
          event.run();
        }
      }
      return nowNs;
    }

    @Override
    public Instant now() {
      return Instant.EPOCH;
    }
  }

  private static void turnAway(ServerSocketChannel server) {
    try {
      while (true) {
        server.accept().close();
      }
    } catch (IOException e) {
      // The test has ended.
    }
  }

  @Test
  void aHolderThatDoesNotListenYetIsAwaitedAndThenHasTimeToAnswer() throws Exception {
    Path path = Files.createTempDirectory("vg");
    RunDirectory directory = new RunDirectory(path, RunPlace.Origin.NAMED);
    UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.socket());
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        SeatLock held = SeatLock.tryTake(directory.lock(), ProcessIdentity.current()).lock()) {
      try (ServerSocketChannel before = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
        before.bind(address); // and then its socket refuses
      }
      Clock clock =
          new Clock(
              10_000_000_000L,
              () -> {
                try {
                  Files.delete(directory.socket());
                  server.bind(address);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
                new Thread(() -> turnAway(server)).start();
              });
      Node node = new Node(PoolSettings.from(GpuPoolOptions.defaults()), clock, ended -> {});
      assertThat(held.isHeld()).isTrue();
      assertThatThrownBy(() -> keeper(node, directory).join()).isInstanceOf(VgpuException.class);
      assertThat(clock.nowNs).isBetween(15_000_000_000L, 16_000_000_000L);
      node.shutDown();
      node.awaitEnd();
    }
    Pools.delete(path);
  }
}
