package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM that runs under several virtual GPUs: which one each thread is bound to. */
class ThreadBindingTest {
  private final FakeBackend backend = new FakeBackend();
  @TempDir private Path directory;
  private GpuPool pool;
  private VirtualGpu a;
  private VirtualGpu b;

  @BeforeEach
  void attachTwo() {
    pool =
        new NodeRegistry(Map.of(), () -> List.of(backend))
            .openPool(
                GpuPoolOptions.builder().runDirectory(directory).gpus(Pools.gpus(1)).build(),
                new Discovery(List.of()),
                NanoClock.SYSTEM);
    a = pool.acquire(Pools.share(NEARLINE, 30));
    b = pool.acquire(Pools.share(NEARLINE, 30));
    a.attachThisJvm();
  }

  @AfterEach
  void close() {
    pool.close();
  }

  private String bound() {
    return backend.bound.get();
  }

  @Test
  void whatIsInsideIsBoundAndOthersFollow() throws Exception {
    assertThat(bound()).isEqualTo("none");
    String inCall = a.call(this::bound);
    assertThat(inCall).isEqualTo(a.id());
    String ofOther = b.call(this::bound);
    assertThat(ofOther).isEqualTo(b.id());
    assertThat(backend.attached).hasSize(2);
    a.run(() -> assertThat(bound()).isEqualTo(a.id()));
    assertThat(b.submit(this::bound).get(10, TimeUnit.SECONDS)).isEqualTo(b.id());
    assertThat(bound()).isEqualTo("none");
    assertThatThrownBy(() -> b.attachThisJvm())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("already");
  }

  @Test
  void nestedOnesAreLeftInAnyOrder() throws Exception {
    GpuTurn first = a.enter();
    GpuTurn second = b.enter();
    assertThat(bound()).isEqualTo(b.id());
    GpuTurn again = a.enter();
    assertThat(bound()).isEqualTo(a.id());
    again.close();
    assertThat(bound()).isEqualTo(b.id());
    String within = a.call(this::bound);
    assertThat(within).isEqualTo(a.id());
    assertThat(bound()).isEqualTo(b.id());
    first.close();
    assertThat(bound()).isEqualTo(b.id());
    second.close();
    assertThat(bound()).isEqualTo("none");
    second.close();
  }

  @Test
  void turnWithinTheSameIsNotBoundAgain() throws Exception {
    try (GpuTurn turn = a.enter()) {
      int before = backend.binds.get();
      a.run(() -> {});
      try (GpuTurn nested = a.enter()) {
        assertThat(nested.isYieldRequested()).isFalse();
      }
      assertThat(backend.binds.get()).isEqualTo(before);
      assertThat(turn.isYieldRequested()).isFalse();
    }
  }

  @Test
  void turnThatACallDidNotCloseIsLeftWithIt() throws Exception {
    GpuTurn forgotten =
        a.call(
            () -> {
              GpuTurn turn = a.enter();
              assertThat(bound()).isEqualTo(a.id());
              return turn;
            });
    assertThat(bound()).isEqualTo("none");
    forgotten.close();
  }

  @Test
  void turnThatAnotherThreadClosesIsForgottenAtTheNext() throws Exception {
    GpuTurn turn = a.enter();
    FutureTask<String> elsewhere =
        CallsTest.start(
            () -> {
              turn.close();
              return bound();
            });
    assertThat(elsewhere.get(10, TimeUnit.SECONDS)).isEqualTo("none");
    b.run(() -> assertThat(bound()).isEqualTo(b.id()));
    assertThat(bound()).isEqualTo("none");
  }

  /** Kernels take turns, calls do not: an endless call delays no other. */
  @Test
  void callsNeedNoTurn() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    FutureTask<Boolean> endless =
        CallsTest.start(() -> a.call(() -> end.await(30, TimeUnit.SECONDS)));
    Pools.await(() -> a.usage().calls() == 1);
    String ofOther = b.call(this::bound);
    assertThat(ofOther).isEqualTo(b.id());
    end.countDown();
    assertThat(endless.get(10, TimeUnit.SECONDS)).isTrue();
  }

  /** This JVM lives on, but must leave a virtual GPU that is closed. */
  @Test
  void closingTakesThisJvmFromUnderIt() throws Exception {
    b.run(() -> {});
    FakeBackend.FakeLease lease = backend.leases.get(b.id());
    assertThat(lease.pids).hasSize(1);
    GpuTurn turn = b.enter();
    b.close();
    assertThat(lease.pids).hasSize(1);
    turn.close();
    Pools.await(() -> pool.leases().size() == 1);
    assertThat(lease.pids).isEmpty();
    assertThatThrownBy(() -> b.enter()).isInstanceOf(IllegalStateException.class);
  }
}
