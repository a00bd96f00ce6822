package dev.vgpu.core.pool;

import static dev.vgpu.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool.Listening;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process takes the seat over, but fails when it serves already; then another one takes it. */
@Timeout(60)
class FailedTakeOverTest extends TwoPools {
  private final CountDownLatch serves = new CountDownLatch(1);
  private final CountDownLatch fails = new CountDownLatch(1);
  private final CountDownLatch failed = new CountDownLatch(1);
  private volatile boolean isWell;

  /** Its last step before it holds the seat is to watch the GPUs. */
  private final class Provider implements GpuProvider {
    @Override
    public BackendStatus status() {
      return BackendStatus.ofAvailable("test");
    }

    @Override
    public List<PhysicalGpu> gpus() {
      return List.copyOf(gpus);
    }

    @Override
    public Listening watch(GpuHealthListener listener) {
      if (isWell) {
        return () -> {};
      }
      serves.countDown();
      try {
        fails.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      failed.countDown();
      throw new VgpuException("the GPUs cannot be watched");
    }
  }

  /** Makes the client take the seat over, which it does until it fails. */
  private void letClientTakeOver() throws InterruptedException {
    holder.close();
    serves.await();
  }

  private void openFailingClient() {
    client.close();
    client = open(new Discovery(List.of(new Provider())));
  }

  @AfterEach
  void recover() {
    isWell = true;
    fails.countDown();
  }

  @Test
  void itsOwnVirtualGpusGoOnAtTheNextHolder() throws Exception {
    openFailingClient();
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    letClientTakeOver();
    fails.countDown();
    failed.await();
    holder = open();
    assertThat(client.leases()).map(GpuLease::id).containsExactly(gpu.id());
    assertThat(CallsTest.start(() -> gpu.call(() -> 42)).get(30, TimeUnit.SECONDS)).isEqualTo(42);
  }

  @Test
  void itsClientsGoOnAtTheNextHolder() throws Exception {
    openFailingClient();
    letClientTakeOver();
    holder = open();
    VirtualGpu gpu = holder.acquire(Pools.request(NEARLINE).build());
    fails.countDown();
    failed.await();
    assertThat(CallsTest.start(holder::leases).get(30, TimeUnit.SECONDS))
        .map(GpuLease::id)
        .containsExactly(gpu.id());
    assertThat(CallsTest.start(() -> gpu.call(() -> 42)).get(30, TimeUnit.SECONDS)).isEqualTo(42);
  }
}
