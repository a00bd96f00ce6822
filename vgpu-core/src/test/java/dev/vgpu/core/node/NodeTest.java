package dev.vgpu.core.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.timeout;
import static org.mockito.Mockito.verify;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadPoolExecutor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who decides about the leases of a JVM. */
class NodeTest {
  private final Node node =
      new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});

  @AfterEach
  void shutDown() {
    node.shutDown();
    node.awaitEnd();
  }

  @Test
  void aTakeOverThatFailsBeforeItBooksTheLeasesLeavesThemToTheNextHolder() throws Exception {
    PhysicalGpu gpu = Pools.gpus(1).get(0);
    node.manage(List.of(gpu), node.settings());
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(100)).build();
    Lease lease =
        new LocalClaim(request, node, mock(LeaseOwner.class), null)
            .lease("a", List.of(node.gpu(gpu.id())));
    lease.remote(node.turns(lease.on).new Tenant(lease.id, lease.gate));
    assertThat(node.newSlots()).hasSize(1);
    node.stopDeciding();
    RemoteTurns.Reports next = mock();
    node.turns().forEach(turns -> turns.connect(next));
    lease.remote().claim(standing -> {});
    FutureTask<Integer> call = new FutureTask<>(() -> enter(lease));
    Thread thread = new Thread(call);
    thread.setDaemon(true);
    thread.start();
    verify(next, timeout(30_000)).want("a");
    lease.remote().open(1, false);
    assertThat(call.get()).isEqualTo(42);
  }

  private static int enter(Lease lease) throws InterruptedException {
    lease.calls.enter(CallOptions.defaults(), lease).close();
    return 42;
  }

  /** Otherwise each lease that is closed while nobody has the seat would take a thread. */
  @Test
  void aLeaseThatEndsWhileNobodyDecidesTakesNoThreadAndIsToldToTheNext() {
    PhysicalGpu gpu = Pools.gpus(1).get(0);
    node.manage(List.of(gpu), node.settings());
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(100)).build();
    Lease lease =
        new LocalClaim(request, node, mock(LeaseOwner.class), null)
            .lease("a", List.of(node.gpu(gpu.id())));
    lease.remote(node.turns(lease.on).new Tenant(lease.id, lease.gate));
    Authority gone = mock();
    doThrow(new SeatLostException("gone")).when(gone).ended(lease);
    node.authority(gone);
    lease.close();
    verify(gone).ended(lease);
    assertThat(((ThreadPoolExecutor) node.workers()).getTaskCount()).isZero();
    Authority next = mock();
    node.authority(next);
    lease.endIfDrained();
    verify(next).ended(lease);
  }
}
