package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Asked;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.LeaseOwner;
import dev.vgpu.core.node.LocalClaim;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.reclaim.Suspensions;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What waits in the book of a process that gives the seat up changes nothing any more. */
@Timeout(60)
class GivenUpTableTest {
  private static final long SECOND_NS = 1_000_000_000;

  @TempDir Path directory;
  private final FakeBackend hook = new FakeBackend();
  private final Node node =
      new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
  private LeaseTable table;
  private Booking booking;

  @BeforeEach
  void book() throws IOException {
    node.manage(List.copyOf(Pools.gpus(1)), node.settings());
    Enforcements enforcements = Enforcements.in(directory, () -> List.of(hook));
    LeaseDirectory disk = new LeaseDirectory(directory);
    table = new LeaseTable(node, node.newSlots(), enforcements, disk, null);
    VirtualGpuRequest request = request(100);
    booking =
        table.acquire(
            new Asked(request, new LocalClaim(request, node, mock(LeaseOwner.class), null)));
  }

  @AfterEach
  void shutDown() {
    node.shutDown();
  }

  private static VirtualGpuRequest request(int mebibytes) {
    return Pools.request(NEARLINE)
        .memory(MemorySize.ofMebibytes(mebibytes))
        .require(Capabilities.Scope.PROCESS)
        .build();
  }

  private static void assertSeatLost(FutureTask<?> task) {
    assertThatThrownBy(task::get).hasCauseInstanceOf(SeatLostException.class);
  }

  @Test
  void whatWaitsForABackendChangesNothing() throws Exception {
    CountDownLatch goes = new CountDownLatch(1);
    CountDownLatch come = new CountDownLatch(1);
    hook.beforePrepare =
        () -> {
          come.countDown();
          try {
            goes.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        };
    FutureTask<EnforcedLease> prepares = CallsTest.start(() -> table.enforce(booking));
    come.await();
    FutureTask<Integer> resizes =
        CallsTest.start(
            () -> {
              table.resize(booking, request(50));
              return 0;
            });
    table.stopDeciding();
    goes.countDown();
    assertSeatLost(prepares);
    assertSeatLost(resizes);
    assertThat(booking.enforced()).isNull();
    assertThat(booking.request().memory()).isEqualTo(MemorySize.ofMebibytes(100));
  }

  @Test
  void aSuspensionThatWaitsForWorkMovesNothing() throws Exception {
    MemoryMover mover = mock(MemoryMover.class);
    assertThat(table.enforce(booking)).isNotNull();
    FakeBackend.FakeLease lease = hook.leases.get(booking.id);
    lease.mover = Optional.of(mover);
    lease.attach(1);
    lease.want();
    lease.begin();
    Suspensions suspensions = new Suspensions(node.clock(), table, null, List::of);
    FutureTask<Boolean> suspends =
        CallsTest.start(
            () -> suspensions.suspend(booking, Booking.BY_OWNER, Suspensions.ALL, 2 * SECOND_NS));
    Pools.await(() -> !lease.open);
    table.stopDeciding();
    assertSeatLost(suspends);
    verify(mover, never()).moveOut(any(), any());
    verify(mover, never()).moveBack(any());
    assertThat(lease.open).isFalse();
    lease.exit(1);
  }
}
