package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Virtual GPUs on several GPUs, acquired by the seat's holder and by another process. */
@Timeout(60)
class GangPoolTest extends TwoPools {
  private static final int GPUS = 3;

  GangPoolTest() {
    super(GPUS);
  }

  private VirtualGpuRequest single(int gpu) {
    return Pools.request(NEARLINE).gpu(gpus.get(gpu).id()).build();
  }

  @Test
  void bothSeeAllGpusOfGang() {
    VirtualGpu gang = client.acquire(Pools.request(ONLINE).gpuCount(2).build());
    assertThat(gang.gpus())
        .map(PhysicalGpu::id)
        .containsExactly(gpus.get(0).id(), gpus.get(1).id());
    for (GpuPool pool : List.of(holder, client)) {
      assertThat(pool.leases())
          .singleElement()
          .satisfies(lease -> assertThat(lease.id()).isEqualTo(gang.id()))
          .satisfies(
              lease ->
                  assertThat(lease.gpus()).containsExactly(gpus.get(0).id(), gpus.get(1).id()));
    }
    gang.close();
    holder.acquire(Pools.share(ONLINE, 100)).close();
  }

  @Test
  void sharesAndQuotaAreTakenOnEachGpuOrNowhere() throws Exception {
    VirtualGpu first =
        holder.acquire(Pools.share(ONLINE, 60).toBuilder().gpu(gpus.get(1).id()).build());
    VirtualGpu gang = client.acquire(Pools.share(ONLINE, 60).toBuilder().gpuCount(2).build());
    assertThat(gang.gpus())
        .map(PhysicalGpu::id)
        .containsExactly(gpus.get(0).id(), gpus.get(2).id());
    assertThatThrownBy(
            () -> holder.acquire(Pools.share(NEARLINE, 41).toBuilder().gpuCount(2).build()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("would add up to 101 percent of gpu=" + gpus.get(0).id());
    assertThat(holder.leases()).hasSize(2);
    holder.acquire(Pools.share(OFFLINE, 100).toBuilder().gpuCount(3).build()).close();
    first.close();
    gang.close();
    Pools.await(() -> holder.leases().isEmpty());
    holder.acquire(Pools.share(ONLINE, 100).toBuilder().gpuCount(3).build()).close();
  }

  /** The other process sends the names over the wire; without them, the pool takes 0 and 1. */
  @Test
  void namedGpusAreTakenAllOrNone() {
    VirtualGpuRequest both =
        Pools.share(ONLINE, 60).toBuilder()
            .gpus(List.of(gpus.get(2).id(), gpus.get(1).id()))
            .build();
    VirtualGpu gang = client.acquire(both);
    assertThat(gang.gpus())
        .map(PhysicalGpu::id)
        .containsExactly(gpus.get(1).id(), gpus.get(2).id());
    assertThat(holder.leases().get(0).request().gpus()).isEqualTo(both.gpus());
    assertThatThrownBy(
            () ->
                client.acquire(
                    both.toBuilder().gpus(List.of(gpus.get(0).id(), gpus.get(1).id())).build()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("would add up to 120 percent of gpu=" + gpus.get(1).id());
    assertThatThrownBy(
            () ->
                client.acquire(
                    both.toBuilder().gpus(List.of(gpus.get(0).id(), new GpuId("none"))).build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no such GPU");
    assertThatThrownBy(
            () ->
                gang.resize(
                    both.toBuilder().gpus(List.of(gpus.get(0).id(), gpus.get(1).id())).build()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(holder.leases()).hasSize(1);
  }

  @Test
  void moreGpusThanThereAreIsSaidAtOnce() {
    assertThatThrownBy(() -> client.acquire(Pools.request(ONLINE).gpuCount(4).build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("more GPUs than this pool has")
        .hasMessageContaining("gpuCount=4");
  }

  @Test
  void resizeIsOnAllGpusOrNone() {
    VirtualGpu gang = client.acquire(Pools.share(ONLINE, 30).toBuilder().gpuCount(2).build());
    VirtualGpu other =
        holder.acquire(Pools.share(ONLINE, 50).toBuilder().gpu(gpus.get(1).id()).build());
    assertThatThrownBy(() -> gang.resize(gang.request().toBuilder().computePercent(51).build()))
        .isInstanceOf(GpuCapacityException.class);
    gang.resize(gang.request().toBuilder().computePercent(50).build());
    assertThatThrownBy(() -> gang.resize(gang.request().toBuilder().gpuCount(1).build()))
        .isInstanceOf(IllegalArgumentException.class);
    other.close();
    assertThat(holder.leases()).map(GpuLease::entitledPercent).containsExactly(50.0);
  }

  /** Threads of both pools make calls; two tenants are never on one GPU at once. */
  @Test
  void callsOfGangsAndSinglesNeverMeetOnOneGpu() throws Exception {
    List<VirtualGpu> tenants =
        List.of(
            client.acquire(Pools.request(NEARLINE).gpuCount(3).build()),
            holder.acquire(Pools.request(NEARLINE).gpuCount(2).build()),
            client.acquire(Pools.request(NEARLINE).gpuCount(2).gpu(gpus.get(2).id()).build()),
            holder.acquire(single(0)),
            client.acquire(single(1)),
            holder.acquire(single(2)));
    AtomicReferenceArray<String> inside = new AtomicReferenceArray<>(GPUS);
    AtomicInteger met = new AtomicInteger();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (VirtualGpu tenant : tenants) {
      FutureTask<Integer> task =
          new FutureTask<>(
              () -> {
                for (int i = 0; i < 60; i++) {
                  int before = tenant.call(() -> use(tenant, inside));
                  met.addAndGet(before);
                }
                return 60;
              });
      tasks.add(task);
      Thread thread = new Thread(task);
      thread.setDaemon(true);
      thread.start();
    }
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isEqualTo(60);
    }
    assertThat(met).hasValue(0);
    for (VirtualGpu tenant : tenants) {
      assertThat(tenant.usage().calls()).isEqualTo(60);
      tenant.close();
    }
    Pools.await(() -> holder.leases().isEmpty());
  }

  /** Returns how many GPUs were in use by other tenants. */
  private int use(VirtualGpu tenant, AtomicReferenceArray<String> inside) {
    int met = 0;
    for (PhysicalGpu gpu : tenant.gpus()) {
      met += inside.compareAndSet(index(gpu), null, tenant.id()) ? 0 : 1;
    }
    for (int i = 0; i < 20_000; i++) {
      Thread.onSpinWait();
    }
    for (PhysicalGpu gpu : tenant.gpus()) {
      inside.compareAndSet(index(gpu), tenant.id(), null);
    }
    return met;
  }

  private int index(PhysicalGpu gpu) {
    return gpus.stream().map(PhysicalGpu::id).toList().indexOf(gpu.id());
  }

  @Test
  void gangOutlivesTheSeatsHolder() throws Exception {
    VirtualGpu gang = client.acquire(Pools.share(ONLINE, 30).toBuilder().gpuCount(3).build());
    Map<String, String> ignored = gang.environment();
    holder.close();
    Pools.await(() -> client.leases().size() == 1);
    assertThat(client.leases()).singleElement().matches(lease -> lease.gpus().size() == GPUS);
    assertThat(gang.call(() -> 7)).isEqualTo(7);
    assertThatThrownBy(() -> client.acquire(Pools.share(ONLINE, 71)))
        .isInstanceOf(GpuCapacityException.class);
    FakeBackend.FakeLease lease = backend.leases.get(gang.id());
    lease.attach(1);
    lease.want();
    Pools.await(() -> lease.open);
    lease.begin();
    lease.end(1_000);
    lease.exit(1);
    gang.close();
    assertThat(client.leases()).isEmpty();
    client.acquire(Pools.share(ONLINE, 100).toBuilder().gpuCount(3).build()).close();
  }
}
