package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.UsageRecord;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The usage of an attached JVM, across a take-over. */
class AttachedUsageTest {
  private final FakeBackend backend = new FakeBackend();
  private final List<Pools.TestGpu> gpus = Pools.gpus(1);

  @TempDir private Path directory;

  private GpuPool open() {
    return new NodeRegistry(Map.of(), () -> List.of(backend))
        .openPool(
            GpuPoolOptions.builder().runDirectory(directory).gpus(gpus).build(),
            new Discovery(List.of()),
            NanoClock.SYSTEM);
  }

  private static void work() {
    long untilNs = NanoClock.SYSTEM.nanoTime() + 2_000_000;
    while (NanoClock.SYSTEM.nanoTime() < untilNs) {
      Thread.onSpinWait();
    }
  }

  /** The backend measures the process, calls included; they must not be counted again. */
  @Test
  void callsOfAnAttachedJvmAreNotCountedTwiceWhenTheSeatIsTakenOver() throws Exception {
    GpuPool holder = open();
    try (GpuPool client = open();
        VirtualGpu gpu = client.acquire(Pools.share(NEARLINE, 50))) {
      gpu.run(AttachedUsageTest::work);
      gpu.attachThisJvm();
      for (int i = 0; i < 5; i++) {
        gpu.run(AttachedUsageTest::work);
      }
      backend.leases.get(gpu.id()).gpuTimeNs = 10_000_000; // measured by the hook
      Duration before = gpu.usage().gpuTime();
      assertThat(metered(client)).isEqualTo(before);
      holder.close();
      assertThat(client.leases()).hasSize(1);
      assertThat(gpu.usage().gpuTime()).isEqualTo(before);
      Pools.await(() -> metered(client).equals(before));
    } finally {
      holder.close();
    }
  }

  /** The fake backend reports three refused allocations, however short the lease lived. */
  @Test
  void refusedAllocationsAreToldAlsoOfAVirtualGpuThatIsClosedAtOnce() throws Exception {
    try (GpuPool pool = open()) {
      VirtualGpu gpu = pool.acquire(Pools.share(NEARLINE, 50));
      Map<String, String> ignored = gpu.environment();
      gpu.close();
      Pools.await(
          () -> pool.recentEvents().stream().anyMatch(AttachedUsageTest::saysThreeWereDenied));
      assertThat(pool.leases()).isEmpty();
    }
  }

  /** A tenant that yields by itself loses no turn that the scheduler knows of. */
  @Test
  void whoGivesWayByItselfIsToldAsPreempted() throws Exception {
    try (GpuPool pool = open()) {
      VirtualGpu online = pool.acquire(Pools.share(PreemptionClass.ONLINE, 50));
      VirtualGpu batch = pool.acquire(Pools.share(PreemptionClass.OFFLINE, 50));
      Map<String, String> ignored = batch.environment();
      backend.leases.get(batch.id()).listener.yielded(online.id(), 3);
      backend.leases.get(batch.id()).listener.yielded(online.id(), 4);
      Pools.await(() -> timesPreempted(pool, batch.id(), online.id()) == 7);
      assertThat(batch.usage().preemptions()).isEqualTo(7);
    }
  }

  private static long timesPreempted(GpuPool pool, String victim, String by) {
    return pool.recentEvents().stream()
        .filter(GpuEvent.Preempted.class::isInstance)
        .map(GpuEvent.Preempted.class::cast)
        .filter(event -> event.virtualGpu().equals(victim) && event.by().equals(by))
        .mapToLong(GpuEvent.Preempted::times)
        .sum();
  }

  private static boolean saysThreeWereDenied(GpuEvent event) {
    return event instanceof GpuEvent.AllocationDenied denied
        && denied.count() == 3
        && denied.reason().startsWith("more than its quota of 100MiB");
  }

  private static Duration metered(GpuPool pool) {
    return pool.usageSince(Instant.EPOCH).stream()
        .map(UsageRecord::gpuTime)
        .reduce(Duration.ZERO, Duration::plus);
  }
}
