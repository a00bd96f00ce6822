package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.MemoryReservation;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The seat's holder and a client, on one GPU of 1,000 MiB with 50 % oversubscription. */
@Timeout(30)
class MemoryReclaimTest {
  private static final GpuSettings SETTINGS =
      GpuSettings.builder()
          .memoryOversubscriptionPercent(150)
          .memoryWatermarks(10, 20)
          .memoryForecast(Duration.ZERO)
          .reclaimAskTimeout(Duration.ofSeconds(20))
          .build();

  private final FakeBackend backend = new FakeBackend();
  private final List<Pools.TestGpu> gpus = Pools.gpus(1);
  private final List<GpuEvent> events = new CopyOnWriteArrayList<>();
  private Path directory;
  private GpuPool holder;
  private GpuPool client;

  @BeforeEach
  void openBoth() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder = open();
    client = open();
    GpuPool.Listening ignored = client.listen(events::add);
    assertThat(client.leases()).isEmpty(); // the seat now knows that it listens
  }

  @AfterEach
  void closeBoth() throws IOException {
    client.close();
    holder.close();
    Pools.delete(directory);
  }

  private GpuPool open() {
    return new NodeRegistry(Map.of(), () -> List.of(backend))
        .openPool(
            GpuPoolOptions.builder()
                .runDirectory(directory)
                .gpus(gpus)
                .gpuSettings(SETTINGS)
                .build(),
            new Discovery(List.of()),
            NanoClock.SYSTEM);
  }

  private static VirtualGpuRequest request(PreemptionClass preemptionClass, long mebibytes) {
    return Pools.request(preemptionClass)
        .name(preemptionClass == ONLINE ? "online" : "other")
        .memory(MemorySize.ofMebibytes(mebibytes))
        .build();
  }

  @Test
  void quotasMayTakeMoreThanTheGpuHasButThoseOfOnlineTenantsNot() throws Exception {
    VirtualGpu online = holder.acquire(request(ONLINE, 900));
    VirtualGpu offline = client.acquire(request(OFFLINE, 600));
    assertThat(List.of(online, offline)).noneMatch(VirtualGpu::isClosed);
    assertThatThrownBy(() -> client.acquire(request(OFFLINE, 1)))
        .isInstanceOf(GpuCapacityException.class);
    offline.close();
    Pools.await(() -> holder.leases().size() == 1); // the holder learns of it
    assertThatThrownBy(() -> holder.acquire(request(ONLINE, 101)))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("more than the 100MiB that are free");
    assertThatThrownBy(() -> holder.acquire(request(NEARLINE, 1_001)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void ownerInAnotherProcessIsAskedAndYields() throws Exception {
    VirtualGpu online = holder.acquire(request(ONLINE, 900));
    online.onReclaim(
        wanted -> {
          throw new AssertionError("an online tenant was asked");
        });
    VirtualGpu offline = client.acquire(request(OFFLINE, 600));
    AtomicInteger asked = new AtomicInteger();
    MemoryReservation cache = offline.tryReserve(MemorySize.ofMebibytes(500)).orElseThrow();
    offline.onReclaim(
        wanted -> {
          asked.incrementAndGet();
          cache.close();
        });
    MemoryReservation weights = online.tryReserve(MemorySize.ofMebibytes(450)).orElseThrow();
    Pools.await(() -> asked.get() > 0);
    Pools.await(() -> events.stream().anyMatch(event -> event instanceof GpuEvent.ReclaimAsked));
    assertThat(events)
        .filteredOn(GpuEvent.ReclaimAsked.class::isInstance)
        .singleElement()
        .isInstanceOfSatisfying(
            GpuEvent.ReclaimAsked.class,
            event -> {
              assertThat(event.virtualGpu()).isEqualTo(offline.id());
              assertThat(event.wanted()).isEqualTo(MemorySize.ofMebibytes(150));
              assertThat(event.reason()).contains("50MiB is below the low watermark 100MiB");
            });
    weights.close();
    assertThat(asked).hasValue(1);
  }

  @Test
  void handlerThatThrowsHasAnswered() throws Exception {
    VirtualGpu offline = holder.acquire(request(OFFLINE, 1_000));
    AtomicInteger asked = new AtomicInteger();
    offline.onReclaim(
        wanted -> {
          asked.incrementAndGet();
          throw new IllegalStateException("this is thrown by the test");
        });
    MemoryReservation all = offline.tryReserve(MemorySize.ofMebibytes(950)).orElseThrow();
    Pools.await(() -> asked.get() > 0);
    all.close();
    assertThat(offline.isClosed()).isFalse();
  }

  /** The pid belonged to a tenant when it was read, and to another process afterwards. */
  @Test
  void processThatIsNotUnderTheLeaseAnyMoreIsNotEnded() throws Exception {
    VirtualGpu offline = holder.acquire(request(OFFLINE, 1_000));
    assertThat(offline.environment()).isNotEmpty();
    FakeBackend.FakeLease lease = backend.leases.get(offline.id());
    Process foreign = new ProcessBuilder("sleep", "60").start();
    try {
      AtomicInteger looks = new AtomicInteger();
      lease.attach(foreign.pid());
      lease.visible =
          () -> {
            int look = looks.incrementAndGet();
            lease.usedBytes = MemorySize.ofMebibytes(950).bytes(); // from the first look on
            return look <= 2 ? List.of(foreign.pid()) : List.of();
          };
      Pools.await(() -> looks.get() >= 6); // the second look prepares to end it
      assertThat(foreign.isAlive()).isTrue();
      assertThat(events).noneMatch(GpuEvent.EndedByReclaim.class::isInstance);
      lease.exit(foreign.pid());
    } finally {
      foreign.destroyForcibly();
    }
  }

  @Test
  void processThatCannotBeSuspendedIsEnded() throws Exception {
    VirtualGpu offline = holder.acquire(request(OFFLINE, 1_000));
    assertThat(offline.environment()).isNotEmpty();
    FakeBackend.FakeLease lease = backend.leases.get(offline.id());
    Process program = new ProcessBuilder("sleep", "60").start();
    try {
      lease.attach(program.pid());
      lease.usedBytes = MemorySize.ofMebibytes(950).bytes();
      assertThat(program.waitFor()).isNotZero();
      Pools.await(() -> events.stream().anyMatch(GpuEvent.EndedByReclaim.class::isInstance));
      lease.usedBytes = 0;
      lease.exit(program.pid());
    } finally {
      program.destroyForcibly();
    }
  }
}
