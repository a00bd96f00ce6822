package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CallsTest {
  private final GpuPool pool = Pools.open();
  private final VirtualGpu gpu = pool.acquire(Pools.request(NEARLINE).build());

  @AfterEach
  void close() {
    pool.close();
  }

  /** Runs work on a new thread and returns its result. */
  static <T> FutureTask<T> start(java.util.concurrent.Callable<T> work) {
    FutureTask<T> task = new FutureTask<>(work);
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  @Test
  void callReturnsItsResult() throws Exception {
    assertThat(gpu.<String>call(() -> "done")).isEqualTo("done");
    assertThat(gpu.<String>call(() -> null)).isNull();
    AtomicBoolean ran = new AtomicBoolean();
    gpu.run(() -> ran.set(true));
    assertThat(ran).isTrue();
    assertThat(gpu.usage().calls()).isEqualTo(3);
    assertThat(gpu.usage().running()).isZero();
  }

  @Test
  void callThatThrowsReleasesItsTurn() throws Exception {
    IOException thrown = new IOException("broken");
    assertThatThrownBy(
            () ->
                gpu.call(
                    () -> {
                      throw thrown;
                    }))
        .isSameAs(thrown);
    VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
    assertThat(other.<Integer>call(() -> 7)).isEqualTo(7);
    assertThat(gpu.usage().running()).isZero();
  }

  @Test
  void threadsOfOneTenantRunTogether() throws Exception {
    CyclicBarrier together = new CyclicBarrier(3);
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      tasks.add(start(() -> gpu.<Integer>call(together::await)));
    }
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isBetween(0, 2);
    }
  }

  @Test
  void tenantsDoNotRunTogether() throws Exception {
    VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
    AtomicInteger inside = new AtomicInteger();
    AtomicBoolean overlapped = new AtomicBoolean();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (VirtualGpu each : List.of(gpu, other)) {
      tasks.add(
          start(
              () -> {
                for (int i = 0; i < 2000; i++) {
                  each.run(
                      () -> {
                        overlapped.compareAndSet(false, inside.incrementAndGet() > 1);
                        inside.decrementAndGet();
                      });
                }
                return 1;
              }));
    }
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isEqualTo(1);
    }
    assertThat(overlapped).isFalse();
  }

  @Test
  void boundOnCallsHolds() throws Exception {
    VirtualGpu bounded = pool.acquire(Pools.request(NEARLINE).maxConcurrentCalls(2).build());
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      tasks.add(
          start(
              () -> {
                for (int j = 0; j < 500; j++) {
                  bounded.run(
                      () -> {
                        most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                        Thread.onSpinWait();
                        inside.decrementAndGet();
                      });
                }
                return 1;
              }));
    }
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isEqualTo(1);
    }
    assertThat(most.get()).isLessThanOrEqualTo(2);
    assertThat(bounded.usage().calls()).isEqualTo(4000);
  }

  @Test
  void callWithinACallRunsAtOnceEvenWhileOthersWait() throws Exception {
    VirtualGpu online = pool.acquire(Pools.request(ONLINE).build());
    VirtualGpu offline = pool.acquire(Pools.request(OFFLINE).build());
    List<FutureTask<Integer>> waiting = new ArrayList<>();
    int result =
        offline.<Integer>call(
            () -> {
              waiting.add(start(() -> online.<Integer>call(() -> 1)));
              Pools.await(() -> online.usage().waiting() == 1);
              try (GpuTurn turn = offline.enter()) {
                assertThat(turn.isYieldRequested()).isTrue();
                return offline.<Integer>call(() -> 2);
              }
            });
    assertThat(result).isEqualTo(2);
    assertThat(waiting.get(0).get()).isEqualTo(1);
    assertThat(offline.usage().calls()).isEqualTo(1);
  }

  @Test
  void callOfAnotherTenantOfTheSameGpuWithinACallIsRefused() throws Exception {
    VirtualGpu other = pool.acquire(Pools.request(ONLINE).build());
    assertThatThrownBy(() -> gpu.call(() -> other.<Integer>call(() -> 1)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(gpu.id())
        .hasMessageContaining(other.id());
    assertThat(other.<Integer>call(() -> 1)).isEqualTo(1);
  }

  @Test
  void turnMayBeClosedByAnotherThreadAndTwice() throws Exception {
    VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = gpu.enter();
    assertThat(gpu.usage().running()).isEqualTo(1);
    start(
            () -> {
              turn.close();
              turn.close();
              return 1;
            })
        .get();
    assertThat(gpu.usage().running()).isZero();
    // This thread has left the turn: it may enter the other one, and must queue for this one.
    assertThat(other.<Integer>call(() -> 3)).isEqualTo(3);
    assertThat(gpu.<Integer>call(() -> 4)).isEqualTo(4);
  }

  @Test
  void nestedCallKeepsATurnThatAnotherThreadCloses() throws Exception {
    GpuTurn turn = gpu.enter();
    gpu.run(
        () -> {
          turn.close();
          assertThat(gpu.usage().running()).isEqualTo(1);
        });
    assertThat(gpu.usage().running()).isZero();
  }

  @Test
  void interruptedWaiterLeavesAndOthersGoOn() throws Exception {
    VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = gpu.enter();
    CountDownLatch interrupted = new CountDownLatch(1);
    Thread waiter =
        new Thread(
            () -> {
              try {
                other.run(() -> {});
              } catch (InterruptedException e) {
                interrupted.countDown();
              }
            });
    waiter.start();
    Pools.await(() -> other.usage().waiting() == 1);
    waiter.interrupt();
    interrupted.await();
    assertThat(other.usage().waiting()).isZero();
    turn.close();
    assertThat(other.<Integer>call(() -> 5)).isEqualTo(5);
  }

  @Test
  void interruptedThreadDoesNotStartACall() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> gpu.call(() -> 1)).isInstanceOf(InterruptedException.class);
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
  }

  @Test
  void callThatCannotStartInTimeIsNotRun() throws Exception {
    VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
    AtomicBoolean ran = new AtomicBoolean();
    try (GpuTurn turn = gpu.enter()) {
      assertThat(turn.isYieldRequested()).isFalse();
      for (long ms : new long[] {0, 5}) {
        CallOptions timeout = CallOptions.ofTimeout(Duration.ofMillis(ms));
        FutureTask<Boolean> late =
            start(() -> other.<Boolean>call(() -> ran.getAndSet(true), timeout));
        assertThatThrownBy(late::get)
            .hasCauseInstanceOf(GpuTimeoutException.class)
            .hasMessageContaining(other.id());
      }
    }
    assertThat(ran).isFalse();
    other.run(() -> ran.set(true), CallOptions.ofTimeout(Duration.ZERO));
    assertThat(ran).isTrue();
  }

  @Test
  void waitersAreServedByClassThenArrival() throws Exception {
    VirtualGpu one = pool.acquire(Pools.request(NEARLINE).maxConcurrentCalls(1).build());
    List<String> order = new ArrayList<>();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    try (GpuTurn turn = one.enter()) {
      assertThat(turn.isYieldRequested()).isFalse();
      int waiting = 0;
      for (String name : List.of("OFFLINE 1", "NEARLINE 1", "ONLINE 1", "OFFLINE 2", "ONLINE 2")) {
        CallOptions options =
            CallOptions.builder()
                .preemptionClass(dev.vgpu.request.PreemptionClass.valueOf(name.split(" ", 2)[0]))
                .build();
        tasks.add(
            start(
                () -> {
                  one.run(() -> order.add(name), options);
                  return 1;
                }));
        int expected = ++waiting;
        Pools.await(() -> one.usage().waiting() == expected);
      }
    }
    for (FutureTask<Integer> task : tasks) {
      task.get();
    }
    assertThat(order)
        .containsExactly("ONLINE 1", "ONLINE 2", "NEARLINE 1", "OFFLINE 1", "OFFLINE 2");
  }

  @Test
  void submittedCallsRunAndReportTheirFailures() throws Exception {
    IOException broken = new IOException("broken");
    assertThat(gpu.<Integer>submit(() -> 6).get()).isEqualTo(6);
    CompletableFuture<Integer> failed =
        gpu.submit(
            () -> {
              throw broken;
            });
    assertThatThrownBy(failed::get).isInstanceOf(ExecutionException.class).hasCause(broken);
  }

  @Test
  void cancelledSubmissionIsNotRunAndClosingFailsTheRest() throws Exception {
    VirtualGpu one = pool.acquire(Pools.request(NEARLINE).maxConcurrentCalls(1).build());
    AtomicBoolean ran = new AtomicBoolean();
    CompletableFuture<Integer> first;
    CompletableFuture<Integer> left;
    try (GpuTurn turn = one.enter()) {
      assertThat(turn.isYieldRequested()).isFalse();
      first = one.submit(() -> 1);
      Pools.await(() -> one.usage().waiting() == 1);
      CompletableFuture<Integer> cancelled =
          one.submit(
              () -> {
                ran.set(true);
                return 2;
              });
      left = one.submit(() -> 3);
      assertThat(cancelled.cancel(false)).isTrue();
      one.close();
    }
    for (CompletableFuture<Integer> future : List.of(first, left)) {
      assertThatThrownBy(future::get).hasCauseInstanceOf(IllegalStateException.class);
    }
    assertThat(ran).isFalse();
    assertThatThrownBy(() -> one.submit(() -> 1)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void gpuTimeIsTheUnionOfTheCalls() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    CyclicBarrier inside = new CyclicBarrier(3);
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      tasks.add(
          start(
              () ->
                  gpu.<Integer>call(
                      () -> {
                        inside.await();
                        release.await();
                        return 1;
                      })));
    }
    inside.await();
    Duration before = gpu.usage().gpuTime();
    long startNs = NanoClock.SYSTEM.nanoTime();
    Pools.await(() -> NanoClock.SYSTEM.nanoTime() - startNs > 20_000_000);
    Duration during = gpu.usage().gpuTime().minus(before);
    long passedNs = NanoClock.SYSTEM.nanoTime() - startNs;
    release.countDown();
    for (FutureTask<Integer> task : tasks) {
      task.get();
    }
    assertThat(during).isBetween(Duration.ofMillis(20), Duration.ofNanos(passedNs + 1_000_000));
    assertThat(gpu.usage().running()).isZero();
  }
}
