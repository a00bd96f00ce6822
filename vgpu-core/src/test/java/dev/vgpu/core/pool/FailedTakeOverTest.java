package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPool.Listening;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
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
  private final AtomicInteger breaks = new AtomicInteger();

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
      if (breaks.getAndDecrement() > 0) {
        throw new NoClassDefFoundError("as if its jar was replaced");
      }
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

  /** Nobody else tries again: its calls would wait for ever. */
  @Test
  void itIsTriedAgainWhateverItFailsWith() throws Exception {
    breaks.set(3); // a rehearsal may meet one of them
    isWell = true;
    openFailingClient();
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    holder.close();
    assertThat(CallsTest.start(client::leases).get(30, TimeUnit.SECONDS))
        .map(GpuLease::id)
        .containsExactly(gpu.id());
    holder = open();
  }

  @Test
  void theGpusOfNoProviderAreWatchedIfThoseOfOneCannotBe() {
    AtomicInteger watching = new AtomicInteger();
    GpuProvider able = mock();
    when(able.watch(any()))
        .thenAnswer(
            call -> {
              watching.incrementAndGet();
              return (Listening) watching::decrementAndGet;
            });
    GpuProvider unable = mock();
    when(unable.watch(any())).thenThrow(new VgpuException("as a test wants it"));
    Discovery discovery = new Discovery(List.of(able, unable));
    assertThatThrownBy(() -> discovery.watch(mock(GpuHealthListener.class)))
        .isInstanceOf(VgpuException.class);
    assertThat(watching).hasValue(0);
  }

  /** What a backend or a provider does wrong at the end must not keep the seat from others. */
  @Test
  void aBackendThatCannotBeClosedDoesNotKeepTheSeat() throws Exception {
    assertThat(holder.acquire(Pools.request(NEARLINE).build()).environment()).isNotEmpty();
    backend.beforeClose =
        () -> {
          backend.beforeClose = () -> {};
          throw new NoClassDefFoundError("as if its jar was replaced");
        };
    FutureTask<VirtualGpu> called =
        CallsTest.start(
            () -> {
              VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
              assertThat(gpu.call(() -> 42)).isEqualTo(42);
              return gpu;
            });
    try {
      holder.close();
    } catch (NoClassDefFoundError e) {
      assertThat(e).hasMessageContaining("replaced");
    }
    VirtualGpu gpu = called.get(30, TimeUnit.SECONDS);
    assertThat(CallsTest.start(client::leases).get(30, TimeUnit.SECONDS))
        .map(GpuLease::id)
        .contains(gpu.id());
  }
}
