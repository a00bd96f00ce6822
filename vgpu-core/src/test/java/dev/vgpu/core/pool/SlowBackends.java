package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/** Two processes of a node whose GPUs have a backend that is slow when the test says so. */
@Timeout(60)
abstract class SlowBackends {
  static final Duration LONG = Duration.ofSeconds(50);

  final FakeBackend hook = new FakeBackend();
  final StagedBackend space = new StagedBackend();
  final List<Pools.TestGpu> gpus = Pools.gpus(2);
  private final List<Hold> holds = new ArrayList<>();
  Path directory;
  GpuPool holder;
  GpuPool client;

  /** Holds the first that comes, until it is let go; the next ones pass. */
  static final class Hold implements Runnable {
    final CountDownLatch come = new CountDownLatch(1);
    final CountDownLatch goes = new CountDownLatch(1);
    final AtomicInteger count = new AtomicInteger();
    volatile boolean fails;

    @Override
    public void run() {
      if (count.incrementAndGet() > 1) {
        return;
      }
      come.countDown();
      try {
        goes.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      if (fails) {
        throw new VgpuException("the device said no");
      }
    }
  }

  Hold hold() {
    Hold hold = new Hold();
    holds.add(hold);
    return hold;
  }

  @BeforeEach
  void openBoth() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder = open();
    client = open();
  }

  @AfterEach
  void closeBoth() throws IOException {
    holds.forEach(hold -> hold.goes.countDown());
    client.close();
    holder.close();
    Pools.delete(directory);
  }

  GpuPool open() {
    return new NodeRegistry(Map.of(), () -> List.of(space, hook))
        .openPool(
            GpuPoolOptions.builder().runDirectory(directory).gpus(List.copyOf(gpus)).build(),
            new Discovery(List.of()),
            NanoClock.SYSTEM);
  }

  VirtualGpuRequest.Builder on(int gpu) {
    return Pools.request(NEARLINE).gpu(gpus.get(gpu).id());
  }

  VirtualGpuRequest program() {
    return program(100);
  }

  VirtualGpuRequest smaller() {
    return program(50);
  }

  VirtualGpuRequest program(int mebibytes) {
    return on(1)
        .memory(MemorySize.ofMebibytes(mebibytes))
        .require(Capabilities.Memory.EXACT)
        .require(Capabilities.Scope.PROCESS)
        .build();
  }

  VirtualGpuRequest part(int mebibytes) {
    return on(0)
        .memory(MemorySize.ofMebibytes(mebibytes))
        .require(Capabilities.Compute.SPATIAL)
        .build();
  }

  /** Does what anybody may do, in both processes. */
  void othersAreServed() {
    for (GpuPool pool : List.of(holder, client)) {
      try (VirtualGpu gpu = pool.acquire(program())) {
        assertThat(gpu.environment()).containsEntry("VGPU_LEASE", gpu.id());
        assertThat(gpu.capabilities().memory()).isEqualTo(Capabilities.Memory.EXACT);
        gpu.resize(smaller());
        assertThat(pool.explain(program())).isNotEmpty();
        assertThat(pool.states()).hasSize(2);
        assertThat(pool.usageSince(Instant.EPOCH)).isNotNull();
        assertThat(lists(pool, gpu.id())).isTrue();
      }
    }
  }

  static boolean lists(GpuPool pool, String id) {
    return pool.leases().stream().anyMatch(lease -> lease.id().equals(id));
  }

  /** The lease of a part that is listed. */
  GpuLease listedPart() {
    return client.leases().stream()
        .filter(lease -> lease.gpus().contains(gpus.get(0).id()))
        .findFirst()
        .orElseThrow();
  }

  boolean isOnDisk(String id) {
    return Files.exists(directory.resolve("leases").resolve(id));
  }

  void awaitGone(String id) throws InterruptedException {
    Pools.await(() -> !lists(client, id) && !isOnDisk(id));
    assertThat(hook.leases.get(id)).matches(lease -> lease == null || lease.revoked);
  }
}
