package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** GPUs that are lost and come back, as seen by the seat's holder and by a client. */
@Timeout(60)
class HealthWatchTest {
  private final List<Pools.TestGpu> gpus = Pools.gpus(2);
  private final BlockingQueue<GpuEvent> events = new LinkedBlockingQueue<>();
  private final Provider provider = new Provider();
  private Path directory;
  private GpuPool holder;
  private GpuPool client;

  /** Reports what the test makes it report. */
  private final class Provider implements GpuProvider {
    final AtomicInteger watches = new AtomicInteger();
    final CompletableFuture<GpuHealthListener> listener = new CompletableFuture<>();

    @Override
    public BackendStatus status() {
      return BackendStatus.ofAvailable("test");
    }

    @Override
    public List<PhysicalGpu> gpus() {
      return List.copyOf(gpus);
    }

    @Override
    public List<GpuReading> readings() {
      return List.of(new Reading(gpus.get(1).id()), new Reading(gpus.get(0).id()));
    }

    @Override
    public GpuPool.Listening watch(GpuHealthListener told) {
      watches.incrementAndGet();
      listener.complete(told);
      return watches::decrementAndGet;
    }
  }

  private record Reading(GpuId gpu) implements GpuReading {
    @Override
    public GpuHealth health() {
      return GpuHealth.HEALTHY;
    }

    @Override
    public String healthReason() {
      return "";
    }
  }

  @BeforeEach
  void openBoth() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder = open(provider);
    client = open(new Provider());
    GpuPool.Listening ignored = client.listen(events::add);
    assertThat(client.states()).hasSize(2); // the holder now knows that it listens
  }

  @AfterEach
  void closeBoth() throws IOException {
    client.close();
    holder.close();
    assertThat(provider.watches.get()).isZero();
    Pools.delete(directory);
  }

  private GpuPool open(GpuProvider with) {
    return new NodeRegistry(Map.of(), List::of)
        .openPool(
            GpuPoolOptions.builder().runDirectory(directory).gpus(gpus).build(),
            new Discovery(List.of(with)),
            NanoClock.SYSTEM);
  }

  private GpuEvent.HealthChanged next() throws InterruptedException {
    for (; ; ) {
      GpuEvent event = events.poll(30, TimeUnit.SECONDS);
      if (event == null || event instanceof GpuEvent.HealthChanged) {
        return (GpuEvent.HealthChanged) event;
      }
    }
  }

  @Test
  void aLostGpuIsGrantedToNobodyUntilItIsBack() throws Exception {
    GpuHealthListener watch = provider.listener.get(30, TimeUnit.SECONDS);
    Pools.TestGpu first = gpus.get(0);
    try (VirtualGpu on =
        client.acquire(Pools.request(NEARLINE).name("on").gpu(first.id()).build())) {
      watch.changed(first.id(), GpuHealth.LOST, "it fell off the bus");
      GpuEvent.HealthChanged ofGpu = next();
      assertThat(ofGpu.virtualGpu()).isEmpty();
      assertThat(ofGpu.gpu()).isEqualTo(first.id());
      assertThat(ofGpu.health()).isEqualTo(GpuHealth.LOST);
      assertThat(next().virtualGpu()).isEqualTo(on.id());
      assertThat(client.leases().get(0).impaired())
          .hasValueSatisfying(why -> assertThat(why).contains("fell off the bus"));
      assertThat(client.states().get(0).health()).isEqualTo(GpuHealth.LOST);
      assertThat(client.states().get(0).healthReason()).isEqualTo("it fell off the bus");
      assertThat(client.states().get(1).health()).isEqualTo(GpuHealth.HEALTHY);

      assertThatThrownBy(
              () -> client.acquire(Pools.request(ONLINE).gpu(first.id()).build()).close())
          .isInstanceOf(GpuCapacityException.class)
          .hasMessageContaining("is lost: it fell off the bus");
      try (VirtualGpu elsewhere = client.acquire(Pools.request(ONLINE).build())) {
        assertThat(elsewhere.gpus()).extracting(PhysicalGpu::id).containsExactly(gpus.get(1).id());
      }

      CompletableFuture<Optional<VirtualGpu>> waiting =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  return client.tryAcquire(
                      Pools.request(ONLINE).name("waits").gpu(first.id()).build(),
                      Duration.ofSeconds(30));
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              });
      watch.changed(first.id(), GpuHealth.HEALTHY, "it answers again");
      assertThat(next().health()).isEqualTo(GpuHealth.HEALTHY);
      assertThat(next().virtualGpu()).isEqualTo(on.id());
      waiting.get(30, TimeUnit.SECONDS).orElseThrow().close();
      assertThat(client.leases().get(0).impaired()).isEmpty();
      assertThat(client.states().get(0).healthReason()).isEmpty();
    }
  }

  @Test
  void aGpuThatComesLaterIsToldAndNotUsedYet() throws Exception {
    GpuHealthListener watch = provider.listener.get(30, TimeUnit.SECONDS);
    watch.appeared(gpus.get(0).id()); // known already
    watch.appeared(new GpuId("GPU-new"));
    GpuEvent.HealthChanged event = next();
    assertThat(event.gpu()).isEqualTo(new GpuId("GPU-new"));
    assertThat(event.reason()).contains("was not there when the node's pool was opened");
    assertThat(client.gpus()).hasSize(2);
  }

  @Test
  void faultsAreToldAndADegradedGpuIsGranted() throws Exception {
    GpuHealthListener watch = provider.listener.get(30, TimeUnit.SECONDS);
    watch.fault(gpus.get(0).id(), "a program's own (XID 31)");
    GpuEvent event = events.poll(30, TimeUnit.SECONDS);
    assertThat(event)
        .isInstanceOfSatisfying(
            GpuEvent.GpuFault.class,
            fault -> {
              assertThat(fault.gpu()).isEqualTo(gpus.get(0).id());
              assertThat(fault.reason()).contains("XID 31");
            });
    watch.changed(gpus.get(0).id(), GpuHealth.DEGRADED, "XID 95");
    assertThat(next().health()).isEqualTo(GpuHealth.DEGRADED);
    client.acquire(Pools.request(ONLINE).gpu(gpus.get(0).id()).build()).close();
  }

  @Test
  void readingsAreInTheOrderOfTheGpus() {
    assertThat(client.readings())
        .extracting(GpuReading::gpu)
        .containsExactly(gpus.get(0).id(), gpus.get(1).id());
  }
}
