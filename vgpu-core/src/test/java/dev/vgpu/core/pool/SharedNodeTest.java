package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.Frames;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two nodes in one run directory, each standing for a process. */
@Timeout(30)
class SharedNodeTest {
  private final FakeBackend backend = new FakeBackend();
  private final List<Pools.TestGpu> gpus = Pools.gpus(1);
  private Path directory;
  private GpuPool holder;
  private GpuPool client;

  @BeforeEach
  void openBoth() throws IOException {
    directory = Files.createTempDirectory("vg");
    holder = open(registry());
    client = open(registry());
  }

  @AfterEach
  void closeBoth() throws IOException {
    client.close();
    holder.close();
    Pools.delete(directory);
  }

  private NodeRegistry registry() {
    return new NodeRegistry(Map.of(), () -> List.of(backend));
  }

  private GpuPool open(NodeRegistry registry) {
    return registry.openPool(
        GpuPoolOptions.builder().runDirectory(directory).gpus(gpus).build(),
        new Discovery(List.of()),
        NanoClock.SYSTEM);
  }

  @Test
  void whatIsAskedOfAHolderThatLeavesIsAnsweredByTheNext() throws Exception {
    VirtualGpu prepared = client.acquire(Pools.share(ONLINE, 30));
    VirtualGpu asks = client.acquire(Pools.share(ONLINE, 30));
    assertThat(prepared.environment()).isNotEmpty();
    FutureTask<Map<String, String>> asked = new FutureTask<>(asks::environment);
    backend.beforeClose =
        () -> {
          backend.beforeClose = () -> {};
          new Thread(asked).start();
          while (Files.exists(directory.resolve("seat.sock")) && !asked.isDone()) {
            Thread.onSpinWait();
          }
        };
    holder.close();
    assertThat(asked.get(20, TimeUnit.SECONDS)).containsEntry("VGPU_LEASE", asks.id());
  }

  @Test
  void clientSeesWhatTheHolderManages() {
    assertThat(client.gpus()).map(gpu -> gpu.id()).containsExactly(gpus.get(0).id());
    assertThat(client.backends())
        .map(status -> status.name())
        .containsExactly("in-process", "fake");
  }

  @Test
  void leasesOfBothAreSeenByBoth() throws Exception {
    VirtualGpu one = holder.acquire(Pools.share(ONLINE, 30));
    VirtualGpu two = client.acquire(Pools.share(NEARLINE, 20));
    VirtualGpu three = client.acquire(Pools.request(NEARLINE).build());
    assertThat(holder.leases())
        .map(GpuLease::id)
        .containsExactlyInAnyOrder(one.id(), two.id(), three.id());
    assertThat(client.leases())
        .map(GpuLease::id)
        .containsExactlyInAnyOrder(one.id(), two.id(), three.id());
    assertThat(client.leases())
        .filteredOn(lease -> lease.id().equals(three.id()))
        .singleElement()
        .matches(lease -> lease.entitledPercent() == 50)
        .matches(lease -> lease.pid() == ProcessHandle.current().pid());
    two.close();
    Pools.await(() -> client.leases().size() == 2); // a client's close has no reply
    assertThat(directory.resolve("leases").resolve(two.id())).doesNotExist();
  }

  @Test
  void refusalNamesTheHolders() {
    VirtualGpu one = holder.acquire(Pools.share(ONLINE, 80));
    assertThatThrownBy(() -> client.acquire(Pools.share(NEARLINE, 30)))
        .isInstanceOfSatisfying(
            GpuCapacityException.class,
            e -> assertThat(e.holders()).map(GpuLease::id).containsExactly(one.id()))
        .hasMessageContaining("freePercent(online+nearline)=20");
    assertThatThrownBy(
            () ->
                client.acquire(
                    VirtualGpuRequest.builder().memory(MemorySize.ofGibibytes(9)).build()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void requestWaitsUntilItFits() throws Exception {
    VirtualGpu one = holder.acquire(Pools.share(ONLINE, 80));
    assertThat(client.tryAcquire(Pools.share(ONLINE, 30), Duration.ofMillis(1))).isEmpty();
    FutureTask<Optional<VirtualGpu>> waiting =
        CallsTest.start(() -> client.tryAcquire(Pools.share(ONLINE, 30), Duration.ofSeconds(20)));
    one.close();
    assertThat(waiting.get(20, TimeUnit.SECONDS)).isPresent();
  }

  @Test
  void turnsAreTakenAcrossProcesses() throws Exception {
    VirtualGpu here = holder.acquire(Pools.request(NEARLINE).build());
    VirtualGpu there = client.acquire(Pools.request(NEARLINE).build());
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger overlaps = new AtomicInteger();
    List<FutureTask<Integer>> threads = new ArrayList<>();
    for (VirtualGpu gpu : List.of(here, there)) {
      threads.add(
          CallsTest.start(
              () -> {
                for (int i = 0; i < 300; i++) {
                  gpu.run(
                      () -> {
                        if (inside.getAndIncrement() != 0) {
                          overlaps.incrementAndGet();
                        }
                        Thread.onSpinWait();
                        inside.decrementAndGet();
                      });
                }
                return 0;
              }));
    }
    for (FutureTask<Integer> thread : threads) {
      thread.get(25, TimeUnit.SECONDS);
    }
    assertThat(overlaps).hasValue(0);
    assertThat(there.usage().calls()).isEqualTo(300);
  }

  @Test
  void interruptedCallerDoesNotHarmTheConnection() throws Exception {
    VirtualGpu there = client.acquire(Pools.request(NEARLINE).build());
    VirtualGpu here = holder.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = there.enter();
    Thread.currentThread().interrupt();
    turn.close();
    assertThat(Thread.interrupted()).isTrue();
    here.run(() -> {});
    there.run(() -> {});
    assertThat(client.leases()).hasSize(2);
  }

  @Test
  void resizeIsDecidedByTheHolder() {
    VirtualGpu one = holder.acquire(Pools.share(ONLINE, 50));
    VirtualGpu two = client.acquire(Pools.share(ONLINE, 30));
    two.resize(two.request().toBuilder().computePercent(50).build());
    assertThat(two.request().computePercent()).hasValue(50);
    assertThatThrownBy(() -> two.resize(two.request().toBuilder().computePercent(51).build()))
        .isInstanceOf(GpuCapacityException.class);
    assertThat(holder.leases())
        .filteredOn(lease -> lease.id().equals(two.id()))
        .singleElement()
        .matches(lease -> lease.request().computePercent().getAsInt() == 50);
    one.close();
  }

  @Test
  void eventsReachTheClient() throws Exception {
    CountDownLatch acquired = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    GpuPool.Listening listening =
        client.listen(
            event -> {
              if (event instanceof GpuEvent.Acquired) {
                acquired.countDown();
              }
              if (event instanceof GpuEvent.Closed) {
                closed.countDown();
              }
            });
    assertThat(client.leases()).isEmpty(); // the seat now knows that it listens
    holder.acquire(Pools.share(ONLINE, 50)).close();
    assertThat(acquired.await(10, TimeUnit.SECONDS)).isTrue();
    assertThat(closed.await(10, TimeUnit.SECONDS)).isTrue();
    listening.close();
  }

  @Test
  void programsAreKeptUnderTheirLeaseUntilTheyEnd() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 50));
      ProcessBuilder program = new ProcessBuilder("sh", "-c", "echo $LD_PRELOAD:$VGPU_LEASE; cat");
      program.environment().put("LD_PRELOAD", "");
      Process process = gpu.start(program);
      assertThat(process.inputReader().readLine()).isEqualTo("/hook.so::" + gpu.id());
      FakeBackend.FakeLease lease = backend.leases.get(gpu.id());
      lease.attach(process.pid());
      assertThat(gpu.usage().processes()).isEqualTo(1);
      assertThat(gpu.usage().launches()).isEqualTo(5);
      gpu.close();
      assertThat(pool.leases()).singleElement().matches(l -> l.processes().size() == 1);
      process.outputWriter().close();
      process.waitFor();
      lease.exit(process.pid());
      Pools.await(() -> pool.leases().isEmpty());
      assertThat(lease.revoked).isTrue();
      assertThat(directory.resolve("leases").resolve(gpu.id())).doesNotExist();
    }
    assertThat(backend.opened).isEqualTo(1);
  }

  @Test
  void programThatHasNotAttachedYetKeepsTheLease() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.share(ONLINE, 50));
    Process process = gpu.start(new ProcessBuilder("cat"));
    gpu.close();
    assertThat(client.leases()).hasSize(1);
    process.outputWriter().close();
    Pools.await(() -> client.leases().isEmpty());
  }

  @Test
  void processesTakeTurnsWithCalls() throws Exception {
    VirtualGpu program = client.acquire(Pools.request(NEARLINE).build());
    assertThat(program.environment()).containsEntry("VGPU_LEASE", program.id());
    FakeBackend.FakeLease lease = backend.leases.get(program.id());
    VirtualGpu calls = holder.acquire(Pools.request(NEARLINE).build());
    lease.attach(1);
    lease.want();
    Pools.await(() -> lease.open);
    lease.begin();
    FutureTask<Integer> call = CallsTest.start(() -> calls.call(() -> 42));
    Pools.await(() -> !lease.open);
    assertThat(call.isDone()).isFalse();
    lease.end(1_000_000);
    assertThat(call.get(10, TimeUnit.SECONDS)).isEqualTo(42);
    assertThat(program.usage().gpuTime()).isEqualTo(Duration.ofMillis(1));
    lease.exit(1);
  }

  @Test
  void attachingThisJvmMovesTheMeasuringThere() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    gpu.attachThisJvm();
    assertThat(backend.attached).hasSize(1);
    gpu.run(() -> {});
    FakeBackend.FakeLease lease = backend.leases.get(gpu.id());
    lease.gpuTimeNs = 7;
    Pools.await(() -> gpu.usage().gpuTime().toNanos() == 7);
    lease.exit(ProcessHandle.current().pid());
  }

  @Test
  void whatTheBackendCanMayBeDemanded() {
    VirtualGpuRequest demanding = Pools.request(ONLINE).requires(FakeBackend.CAPABILITIES).build();
    VirtualGpu gpu = client.acquire(demanding);
    assertThat(gpu.capabilities().memory()).isEqualTo(Capabilities.Memory.EXACT);
    Capabilities container = Capabilities.builder().worksFor(Capabilities.Scope.CONTAINER).build();
    assertThatThrownBy(() -> client.acquire(Pools.request(ONLINE).requires(container).build()))
        .hasMessageContaining("worksFor CONTAINER");
  }

  @Test
  void paceOfBestEffortFollowsTheLeases() {
    VirtualGpu one = client.acquire(Pools.request(ONLINE).build());
    Map<String, String> ignored = one.environment();
    assertThat(backend.leases.get(one.id()).permille).isEqualTo(1000);
    VirtualGpu two = holder.acquire(Pools.share(ONLINE, 40));
    assertThat(backend.leases.get(one.id()).permille).isEqualTo(600);
    two.close();
    VirtualGpu three =
        client.acquire(
            Pools.request(ONLINE).policy(SharePolicy.FIXED_SHARE).computePercent(30).build());
    Map<String, String> also = three.environment();
    assertThat(backend.leases.get(three.id()).permille).isEqualTo(300);
    assertThat(also).isNotEmpty();
    assertThat(ignored).isNotEmpty();
  }

  @Test
  void clientTakesOverWhenTheHolderCloses() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.share(ONLINE, 50));
    assertThat(gpu.environment()).isNotEmpty();
    backend.leases.get(gpu.id()).attach(1);
    GpuTurn turn = gpu.enter();
    holder.close();
    Pools.await(() -> backend.opened == 2);
    FutureTask<Integer> call = CallsTest.start(() -> gpu.call(() -> 42));
    turn.close();
    assertThat(call.get(10, TimeUnit.SECONDS)).isEqualTo(42);
    assertThat(client.leases()).singleElement().matches(lease -> lease.id().equals(gpu.id()));
    holder = open(registry()); // now a client
    assertThat(holder.leases()).hasSize(1);
    VirtualGpu other = holder.acquire(Pools.share(ONLINE, 50));
    assertThat(other.id()).isNotEqualTo(gpu.id());
    backend.leases.get(gpu.id()).exit(1);
  }

  @Test
  void damagedFilesOfATenantDoNotKeepTheSeatFromBeingTakenOver() throws Exception {
    VirtualGpu damaged = client.acquire(Pools.share(ONLINE, 30));
    VirtualGpu good = client.acquire(Pools.share(ONLINE, 30));
    assertThat(damaged.environment()).isNotEmpty();
    assertThat(good.environment()).isNotEmpty();
    Files.createFile(directory.resolve("leases").resolve(damaged.id()).resolve("damaged"));
    holder.close();
    Pools.await(() -> backend.opened == 2);
    assertThat(client.leases()).hasSize(2);
    assertThat(damaged.call(() -> 42)).isEqualTo(42);
    assertThatThrownBy(damaged::environment).hasMessageContaining("damaged");
  }

  @Test
  void leaseThatCannotBeWrittenIsRefusedAndNotBooked() throws Exception {
    Path leases = directory.resolve("leases");
    Path away = directory.resolve("away");
    Files.move(leases, away); // fails every write, as a full disk does
    Files.createFile(leases);
    for (GpuPool pool : List.of(holder, client)) {
      assertThatThrownBy(() -> pool.acquire(Pools.share(ONLINE, 80)))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("cannot be written");
    }
    Files.delete(leases);
    Files.move(away, leases);
    assertThat(client.acquire(Pools.share(ONLINE, 80)).id()).isNotEmpty();
  }

  @Test
  void anotherVersionIsRefusedByBothNames() throws Exception {
    try (SocketChannel channel =
        SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("seat.sock")))) {
      ByteBuffer hello = Frames.of("type", "hello", "number", "1", "version", "99");
      channel.write(hello);
      assertThat(Frames.read(channel))
          .contains("version=2 ")
          .contains("version=99")
          .contains("pid=" + ProcessHandle.current().pid());
      assertThat(channel.read(ByteBuffer.allocate(1))).isEqualTo(-1);
    }
  }

  @Test
  void holderOfAnotherVersionIsRefusedByBothNames() throws Exception {
    client.close();
    holder.close();
    try (SeatLock lock =
            SeatLock.tryTake(directory.resolve("seat.lock"), ProcessIdentity.current()).lock();
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      assertThat(lock).isNotNull();
      server.bind(UnixDomainSocketAddress.of(directory.resolve("seat.sock")));
      FutureTask<Integer> answer =
          CallsTest.start(
              () -> {
                SocketChannel channel = server.accept();
                assertThat(Frames.read(channel)).contains("hello");
                return channel.write(
                    Frames.of(
                        "type",
                        "reply",
                        "number",
                        "1",
                        "error",
                        "version",
                        "message",
                        "its version=9, this process's version=2"));
              });
      assertThatThrownBy(() -> open(registry()))
          .isInstanceOf(ProtocolMismatchException.class)
          .hasMessageContaining("version=9")
          .hasMessageContaining("version=2");
      assertThat(answer.get()).isPositive();
    }
  }

  @Test
  void defaultDirectoryThatCannotBeUsedLeavesThisJvmAlone() {
    NodeRegistry alone =
        new NodeRegistry(
            Map.of("XDG_RUNTIME_DIR", directory.resolve("missing").toString()),
            () -> List.of(backend));
    try (GpuPool pool =
        alone.openPool(
            GpuPoolOptions.builder().gpus(Pools.gpus(1)).build(),
            new Discovery(List.of()),
            NanoClock.SYSTEM)) {
      assertThat(pool.backends())
          .filteredOn(status -> status.name().equals("seat"))
          .singleElement()
          .matches(status -> status.unavailableBecause().orElse("").contains("missing"));
      VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 10));
      assertThatThrownBy(gpu::environment).hasMessageContaining("serves its JVM alone");
    }
    assertThatThrownBy(
            () ->
                alone.openPool(
                    GpuPoolOptions.builder().runDirectory(Path.of("/proc/vgpu")).build(),
                    new Discovery(List.of()),
                    NanoClock.SYSTEM))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("/proc/vgpu");
  }

  @Test
  void gpuIsNotManagedFromTwoRunDirectories() throws Exception {
    Path session = Files.createDirectory(directory.resolve("s"));
    Pools.TestGpu gpu = Pools.gpus(1).get(0);
    List<GpuPool> opened = new ArrayList<>();
    for (String name : List.of("1", "2")) {
      NodeRegistry registry =
          new NodeRegistry(Map.of("XDG_RUNTIME_DIR", session.toString()), List::of);
      GpuPoolOptions options =
          GpuPoolOptions.builder().runDirectory(directory.resolve(name)).build();
      Discovery discovery = new Discovery(List.of(Pools.provider(gpu)));
      if (opened.isEmpty()) {
        opened.add(registry.openPool(options, discovery, NanoClock.SYSTEM));
      } else {
        assertThatThrownBy(() -> registry.openPool(options, discovery, NanoClock.SYSTEM))
            .isInstanceOf(VgpuException.class)
            .hasMessageContaining(gpu.id().value())
            .hasMessageContaining("pid=" + ProcessHandle.current().pid());
      }
    }
    opened.get(0).close();
  }

  @Test
  void thirdProcessComesToTheNextHolder() throws Exception {
    GpuPool third = open(registry());
    VirtualGpu of2 = client.acquire(Pools.share(ONLINE, 30));
    VirtualGpu of3 = third.acquire(Pools.share(ONLINE, 30));
    VirtualGpu of1 = holder.acquire(Pools.share(ONLINE, 30));
    GpuTurn turn = of3.enter();
    FutureTask<Integer> waits = CallsTest.start(() -> of2.call(() -> 42));
    of1.close();
    holder.close();
    Pools.await(() -> third.leases().size() == 2 && client.leases().size() == 2);
    turn.close();
    assertThat(waits.get(10, TimeUnit.SECONDS)).isEqualTo(42);
    assertThat(of3.call(() -> 43)).isEqualTo(43);
    third.close();
    Pools.await(() -> client.leases().size() == 1);
  }
}
