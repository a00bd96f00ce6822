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
import dev.vgpu.GpuTurn;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

class PoolTest {
  private static final Duration LONG = Duration.ofMinutes(5);

  private final GpuPool pool = Pools.open();

  @AfterEach
  void close() {
    pool.close();
  }

  @Test
  void refusalSaysWhatWasAskedWhatIsFreeAndWhoHoldsTheRest() {
    VirtualGpu holder = pool.acquire(Pools.share(ONLINE, 70).toBuilder().name("embed").build());
    assertThatThrownBy(() -> pool.acquire(Pools.share(NEARLINE, 40)))
        .isInstanceOfSatisfying(
            GpuCapacityException.class,
            e -> assertThat(e.holders()).singleElement().matches(h -> h.id().equals(holder.id())))
        .hasMessageContaining("computePercent=40")
        .hasMessageContaining("freePercent(online+nearline)=30")
        .hasMessageContaining("freeMemory=900MiB")
        .hasMessageContaining(holder.id());
  }

  @Test
  void offlineSharesAreAdmittedApart() {
    VirtualGpu online = pool.acquire(Pools.share(ONLINE, 100));
    VirtualGpu offline = pool.acquire(Pools.share(OFFLINE, 100));
    assertThat(pool.leases()).hasSize(2);
    assertThatThrownBy(() -> pool.acquire(Pools.share(OFFLINE, 1)))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("freePercent(offline)=0");
    online.close();
    offline.close();
    assertThat(pool.leases()).isEmpty();
  }

  @Test
  void impossibleRequestsAreTheCallersMistake() {
    VirtualGpuRequest tooLarge = Pools.request(ONLINE).memory(MemorySize.ofMebibytes(1001)).build();
    assertThatThrownBy(() -> pool.acquire(tooLarge))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1001MiB")
        .hasMessageContaining("1000MiB");
    VirtualGpuRequest elsewhere = Pools.request(ONLINE).gpu(new GpuId("nowhere")).build();
    assertThatThrownBy(() -> pool.acquire(elsewhere))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("nowhere");
    assertThatThrownBy(() -> pool.tryAcquire(tooLarge, Duration.ofMillis(-1)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void demandsThatNoBackendMeetsAreRefusedOrServedOpen() {
    Capabilities exact = Capabilities.builder().memory(Capabilities.Memory.EXACT).build();
    VirtualGpuRequest demanding = Pools.request(ONLINE).requires(exact).build();
    assertThatThrownBy(() -> pool.acquire(demanding))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("memory EXACT (has SOFT)");
    VirtualGpu open = pool.acquire(demanding.toBuilder().failureMode(FailureMode.OPEN).build());
    assertThat(open.capabilities().memory()).isEqualTo(Capabilities.Memory.SOFT);
  }

  @Test
  void waitersAreServedByClassThenArrival() throws Exception {
    VirtualGpu holder = pool.acquire(Pools.share(ONLINE, 100));
    Queue<String> order = new ConcurrentLinkedQueue<>();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (String name : List.of("NEARLINE-1", "ONLINE-1", "NEARLINE-2", "ONLINE-2")) {
      PreemptionClass preemptionClass =
          name.startsWith("ONLINE") ? PreemptionClass.ONLINE : PreemptionClass.NEARLINE;
      VirtualGpuRequest request = Pools.share(preemptionClass, 100).toBuilder().name(name).build();
      FutureTask<Integer> task =
          new FutureTask<>(
              () -> {
                VirtualGpu gpu = pool.tryAcquire(request, LONG).orElseThrow();
                order.add(name);
                gpu.close();
                return 1;
              });
      Thread thread = new Thread(task);
      thread.start();
      Pools.await(() -> thread.getState() == Thread.State.TIMED_WAITING);
      tasks.add(task);
    }
    assertThatThrownBy(() -> pool.acquire(Pools.share(NEARLINE, 1)))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("4 requests wait in front");
    holder.close();
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isEqualTo(1);
    }
    assertThat(order).containsExactly("ONLINE-1", "ONLINE-2", "NEARLINE-1", "NEARLINE-2");
    assertThat(pool.leases()).isEmpty();
  }

  @Test
  void tryAcquireGivesUpAfterItsTimeoutAndLeavesNothing() throws Exception {
    VirtualGpu holder = pool.acquire(Pools.share(ONLINE, 100));
    for (Duration timeout : List.of(Duration.ZERO, Duration.ofMillis(3))) {
      assertThat(pool.tryAcquire(Pools.share(ONLINE, 50), timeout)).isEmpty();
    }
    holder.close();
    assertThat(pool.tryAcquire(Pools.share(ONLINE, 100), Duration.ZERO)).isPresent();
  }

  @Test
  void waitForCapacityIsInterruptible() throws Exception {
    VirtualGpu holder = pool.acquire(Pools.share(ONLINE, 100));
    CountDownLatch interrupted = new CountDownLatch(1);
    Thread waiter =
        new Thread(
            () -> {
              try {
                Optional<VirtualGpu> got = pool.tryAcquire(Pools.share(ONLINE, 50), LONG);
                assertThat(got).isEmpty();
              } catch (InterruptedException e) {
                interrupted.countDown();
              }
            });
    waiter.start();
    Pools.await(() -> waiter.getState() == Thread.State.TIMED_WAITING);
    waiter.interrupt();
    interrupted.await();
    holder.close();
    assertThat(pool.acquire(Pools.share(ONLINE, 100)).isClosed()).isFalse();
  }

  @Test
  void closingThePoolClosesItsVirtualGpusAndSendsWaitersAway() throws Exception {
    VirtualGpu holder = pool.acquire(Pools.share(ONLINE, 100));
    FutureTask<Optional<VirtualGpu>> waiting =
        new FutureTask<>(() -> pool.tryAcquire(Pools.share(ONLINE, 50), LONG));
    Thread waiter = new Thread(waiting);
    waiter.start();
    Pools.await(() -> waiter.getState() == Thread.State.TIMED_WAITING);
    pool.close();
    pool.close();
    assertThatThrownBy(waiting::get).hasCauseInstanceOf(IllegalStateException.class);
    assertThat(holder.isClosed()).isTrue();
    assertThatThrownBy(() -> holder.call(() -> 1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(holder.id());
    assertThatThrownBy(() -> pool.acquire(Pools.share(ONLINE, 50)))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void closingUnderARunningCallGivesBackWhenItHasEnded() throws Exception {
    VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 100));
    try (GpuTurn turn = gpu.enter()) {
      gpu.close();
      assertThat(turn.isYieldRequested()).isTrue();
      assertThat(pool.leases()).hasSize(1);
    }
    assertThat(pool.leases()).isEmpty();
    gpu.close();
  }

  @Test
  void resizeChangesWhatIsGranted() {
    VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 60));
    gpu.resize(gpu.request().toBuilder().computePercent(90).build());
    assertThat(gpu.request().computePercent()).hasValue(90);
    assertThatThrownBy(() -> pool.acquire(Pools.share(ONLINE, 11)))
        .isInstanceOf(GpuCapacityException.class);
    gpu.resize(gpu.request().toBuilder().preemptionClass(OFFLINE).build());
    assertThat(pool.acquire(Pools.share(ONLINE, 100)).isClosed()).isFalse();
  }

  @Test
  void resizeBeyondCapacityKeepsOldPolicy() throws Exception {
    VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 60));
    VirtualGpu other = pool.acquire(Pools.share(ONLINE, 30));
    VirtualGpuRequest before = gpu.request();
    VirtualGpuRequest.Builder more = before.toBuilder().computePercent(71);
    assertThatThrownBy(() -> gpu.resize(more.build())).isInstanceOf(GpuCapacityException.class);
    try (GpuTurn turn = gpu.enter(dev.vgpu.CallOptions.ofMemory(MemorySize.ofMebibytes(80)))) {
      assertThat(turn.isYieldRequested()).isFalse();
      VirtualGpuRequest less = before.toBuilder().memory(MemorySize.ofMebibytes(50)).build();
      assertThatThrownBy(() -> gpu.resize(less))
          .isInstanceOf(GpuCapacityException.class)
          .hasMessageContaining("80MiB");
    }
    assertThatThrownBy(() -> gpu.resize(before.toBuilder().name("other").build()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(gpu.request()).isSameAs(before);
    other.close();
    gpu.resize(more.build());
    assertThat(gpu.request().computePercent()).hasValue(71);
  }

  @Test
  void tightestGpuIsChosen() {
    try (GpuPool two = Pools.open(2)) {
      VirtualGpu first = two.acquire(Pools.share(ONLINE, 60));
      VirtualGpu second = two.acquire(Pools.share(ONLINE, 50));
      VirtualGpu third = two.acquire(Pools.share(ONLINE, 40));
      assertThat(second.gpu()).isNotEqualTo(first.gpu());
      assertThat(third.gpu()).isEqualTo(first.gpu());
    }
  }

  @Test
  void poolsOnTheSameGpusShareThem() {
    List<Pools.TestGpu> gpus = Pools.gpus(1);
    GpuPoolOptions options =
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(gpus).build();
    try (GpuPool one = GpuPool.open(options)) {
      VirtualGpu gpu = one.acquire(Pools.share(ONLINE, 80));
      try (GpuPool two = GpuPool.open(options)) {
        assertThatThrownBy(() -> two.acquire(Pools.share(ONLINE, 30)))
            .isInstanceOf(GpuCapacityException.class);
        assertThatThrownBy(
                () ->
                    GpuPool.open(
                        GpuPoolOptions.builder()
                            .scope(GpuPoolOptions.Scope.THIS_JVM)
                            .gpus(gpus)
                            .gpuSettings(GpuSettings.builder().offlineFloorPercent(5).build())
                            .build()))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining(gpus.get(0).id().value());
      }
      assertThat(gpu.isClosed()).isFalse();
    }
  }

  @Test
  void poolThatIsOpenedWhileACallOfAClosedOneRunsWaitsForIt() throws Exception {
    GpuPoolOptions options =
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(Pools.gpus(1)).build();
    GpuPool old = GpuPool.open(options);
    GpuTurn turn = old.acquire(Pools.share(ONLINE, 100)).enter();
    old.close();
    try (GpuPool next = GpuPool.open(options)) {
      assertThat(next.leases()).hasSize(1);
      assertThatThrownBy(() -> next.acquire(Pools.share(ONLINE, 1)))
          .isInstanceOf(GpuCapacityException.class);
      turn.close();
      assertThat(next.leases()).isEmpty();
      assertThat(next.acquire(Pools.share(ONLINE, 100)).<Integer>call(() -> 1)).isEqualTo(1);
    }
  }

  @Test
  void listenerThatThrowsIsToldTheNextEvent() throws Exception {
    Queue<GpuEvent> told = new ConcurrentLinkedQueue<>();
    GpuPool.Listening listening =
        pool.listen(
            event -> {
              told.add(event);
              throw new IllegalStateException("listener is broken");
            });
    VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 10));
    gpu.resize(gpu.request().toBuilder().computePercent(20).build());
    assertThatThrownBy(() -> pool.acquire(Pools.share(ONLINE, 90)))
        .isInstanceOf(GpuCapacityException.class);
    gpu.close();
    Pools.await(() -> told.size() == 4);
    assertThat(told)
        .hasExactlyElementsOfTypes(
            GpuEvent.Acquired.class,
            GpuEvent.Resized.class,
            GpuEvent.Refused.class,
            GpuEvent.Closed.class);
    listening.close();
    listening.close();
    pool.acquire(Pools.share(ONLINE, 10)).close();
    assertThat(told).hasSize(4);
  }

  @Test
  void virtualGpuThatIsForgottenIsFoundAndClosed() throws Exception {
    Queue<GpuEvent> told = new ConcurrentLinkedQueue<>();
    GpuPool.Listening listening = pool.listen(told::add);
    String id = acquireAndForget();
    Pools.await(
        () -> {
          System.gc();
          return told.stream()
              .anyMatch(e -> e instanceof GpuEvent.Leaked leaked && leaked.virtualGpu().equals(id));
        });
    Pools.await(() -> pool.leases().isEmpty());
    listening.close();
    assertThat(pool.acquire(Pools.share(ONLINE, 100)).isClosed()).isFalse();
  }

  private String acquireAndForget() {
    return pool.acquire(Pools.share(ONLINE, 100)).id();
  }

  @Test
  @Tag("large") // ./vgpu mutate leaves it out
  void tenThousandVirtualGpusLeaveNothingBehind() throws Exception {
    int threads = Thread.activeCount();
    for (int i = 0; i < 10_000; i++) {
      try (VirtualGpu gpu = pool.acquire(Pools.share(ONLINE, 100))) {
        gpu.run(() -> {});
      }
    }
    List<VirtualGpu> open = new ArrayList<>();
    VirtualGpuRequest small = Pools.request(OFFLINE).memory(MemorySize.ofBytes(1)).build();
    for (int i = 0; i < 10_000; i++) {
      open.add(pool.acquire(small));
    }
    assertThat(pool.leases()).hasSize(10_000);
    open.forEach(VirtualGpu::close);
    assertThat(pool.leases()).isEmpty();
    Pools.await(() -> Thread.activeCount() <= threads + 2); // idle threads end after a while
  }

  @Test
  void withoutAnyProviderTheHostStandsIn() {
    try (GpuPool host =
        GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build())) {
      assertThat(host.gpus())
          .singleElement()
          .matches(gpu -> gpu.id().equals(new GpuId("host")))
          .matches(gpu -> gpu.usableMemory().bytes() > 0)
          .matches(gpu -> gpu.usableMemory().compareTo(gpu.memory()) <= 0);
      assertThat(host.backends()).anyMatch(b -> b.name().equals("in-process") && b.isAvailable());
    }
  }
}
