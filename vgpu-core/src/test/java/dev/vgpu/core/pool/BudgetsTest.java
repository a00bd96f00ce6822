package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.MemoryReservation;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.testing.TestSeed;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BudgetsTest {
  private static final int QUOTA_MIB = 100;

  private final GpuPool pool = Pools.open();
  private final VirtualGpu gpu = pool.acquire(Pools.request(NEARLINE).build());

  @AfterEach
  void close() {
    pool.close();
  }

  private static CallOptions mib(int mebibytes) {
    return CallOptions.ofMemory(MemorySize.ofMebibytes(mebibytes));
  }

  @Test
  void budgetsOfRunningCallsNeverExceedTheQuota() throws Exception {
    AtomicLong inUse = new AtomicLong();
    AtomicLong most = new AtomicLong();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      Random random = new Random(TestSeed.seed() + i);
      tasks.add(
          CallsTest.start(
              () -> {
                for (int j = 0; j < 300; j++) {
                  int need = 1 + random.nextInt(QUOTA_MIB);
                  PreemptionClass[] classes = PreemptionClass.values();
                  CallOptions options =
                      CallOptions.builder()
                          .memory(MemorySize.ofMebibytes(need))
                          .preemptionClass(classes[random.nextInt(classes.length)])
                          .build();
                  gpu.run(
                      () -> {
                        most.accumulateAndGet(inUse.addAndGet(need), Math::max);
                        Thread.onSpinWait();
                        inUse.addAndGet(-need);
                      },
                      options);
                }
                return 1;
              }));
    }
    for (FutureTask<Integer> task : tasks) {
      assertThat(task.get()).isEqualTo(1);
    }
    assertThat(most.get()).isBetween(1L, (long) QUOTA_MIB);
    assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void callLargerThanTheQuotaIsRefusedAtOnce() {
    AtomicBoolean ran = new AtomicBoolean();
    assertThatThrownBy(() -> gpu.run(() -> ran.set(true), mib(QUOTA_MIB + 1)))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("asked=101MiB")
        .hasMessageContaining("quota=100MiB");
    assertThat(ran).isFalse();
  }

  @Test
  void largeCallIsNotStarvedBySmallOnes() throws Exception {
    FutureTask<Integer> large;
    FutureTask<Integer> small;
    List<String> order = new ArrayList<>();
    try (GpuTurn turn = gpu.enter(mib(60))) {
      assertThat(turn.isYieldRequested()).isFalse();
      large = startNamed(order, "large", 90);
      Pools.await(() -> gpu.usage().waiting() == 1);
      small = startNamed(order, "small", 20); // would fit now, but not beside the large one
      Pools.await(() -> gpu.usage().waiting() == 2);
    }
    large.get();
    small.get();
    assertThat(order).containsExactly("large", "small");
    assertThat(gpu.usage().waiting()).isZero();
  }

  private FutureTask<Integer> startNamed(List<String> order, String name, int mebibytes) {
    return CallsTest.start(
        () -> {
          gpu.run(
              () -> {
                synchronized (order) {
                  order.add(name);
                }
              },
              mib(mebibytes));
          return 1;
        });
  }

  @Test
  void reservationTakesOfTheQuotaUntilItIsClosed() throws Exception {
    MemoryReservation weights = gpu.tryReserve(MemorySize.ofMebibytes(70)).orElseThrow();
    assertThat(weights.size()).isEqualTo(MemorySize.ofMebibytes(70));
    assertThat(gpu.hasHeadroom(MemorySize.ofMebibytes(30))).isTrue();
    assertThat(gpu.hasHeadroom(MemorySize.ofMebibytes(31))).isFalse();
    assertThat(gpu.tryReserve(MemorySize.ofMebibytes(31))).isEmpty();
    assertThatThrownBy(() -> gpu.run(() -> {}, mib(31)))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("reserved=70MiB");
    weights.close();
    weights.close();
    gpu.run(() -> {}, mib(QUOTA_MIB));
    assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void reservationThatWouldMakeAWaitingCallImpossibleIsNotGiven() throws Exception {
    FutureTask<Integer> waiting;
    try (GpuTurn turn = gpu.enter(mib(30))) {
      assertThat(turn.isYieldRequested()).isFalse();
      waiting = startNamed(new ArrayList<>(), "waiting", 80);
      Pools.await(() -> gpu.usage().waiting() == 1);
      assertThat(gpu.tryReserve(MemorySize.ofMebibytes(40))).isEmpty();
      assertThat(gpu.tryReserve(MemorySize.ofMebibytes(10))).isPresent();
    }
    assertThat(waiting.get()).isEqualTo(1);
  }
}
