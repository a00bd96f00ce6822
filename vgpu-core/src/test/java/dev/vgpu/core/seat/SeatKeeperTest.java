package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.spy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.files.RunPlace;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process looks for the seat, and is closed meanwhile. */
@Timeout(60)
class SeatKeeperTest {
  private static long links() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("vgpu-link"))
        .count();
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
      new SeatKeeper(
              node,
              directory,
              new Discovery(List.of()),
              List.of(),
              new GpuLocks(Map.of(), RunPlace.Origin.NAMED, path.resolve("gpus")),
              Enforcements.none("as a test wants it"))
          .join();
    }
    closed.await();
    node.awaitEnd();
    Pools.await(() -> links() <= before);
    Pools.delete(path);
  }
}
