package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two threads of a process that is a client of the seat do things at once. */
@Timeout(60)
class ClientRacesTest extends TwoPools {
  private static final Duration LONG = Duration.ofSeconds(50);
  private static final int TIMES = 100;

  private volatile Runnable beforeNextLook = () -> {};

  /** Does something once when it is looked at. */
  private final NanoClock clock =
      new NanoClock() {
        @Override
        public long nanoTime() {
          Runnable now = beforeNextLook;
          beforeNextLook = () -> {};
          now.run();
          return SYSTEM.nanoTime();
        }

        @Override
        public Instant now() {
          return SYSTEM.now();
        }
      };

  private static VirtualGpuRequest of(int mebibytes) {
    return Pools.request(NEARLINE).memory(MemorySize.ofMebibytes(mebibytes)).build();
  }

  @Test
  void aRequestThatIsSentWhileItsPoolClosesFailsAndLeavesTheLine() throws Exception {
    NodeRegistry process = new NodeRegistry(Map.of(), () -> List.of(backend));
    GpuPoolOptions options =
        GpuPoolOptions.builder().runDirectory(directory).gpus(List.copyOf(gpus)).build();
    try (GpuPool closing = process.openPool(options, new Discovery(List.of()), clock);
        GpuPool stays = process.openPool(options, new Discovery(List.of()), clock);
        VirtualGpu all = holder.acquire(of(1000))) {
      FutureTask<Optional<VirtualGpu>> waiting =
          CallsTest.start(
              () -> {
                Thread asks = Thread.currentThread();
                beforeNextLook = () -> closeOn(asks, closing);
                return closing.tryAcquire(of(600), LONG);
              });
      assertThatThrownBy(() -> waiting.get(30, TimeUnit.SECONDS))
          .isInstanceOf(ExecutionException.class)
          .cause()
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      all.resize(of(500));
      assertThat(stays.tryAcquire(of(450), LONG)).as("nobody is before it").isPresent();
    }
  }

  /** Only the thread that asks has just found its pool open. */
  private void closeOn(Thread asks, GpuPool pool) {
    if (Thread.currentThread() == asks) {
      pool.close();
    } else {
      beforeNextLook = () -> closeOn(asks, pool);
    }
  }

  @Test
  void theLastOfTwoSizesIsTheSameHereAndAtTheSeat() throws Exception {
    VirtualGpu gpu = client.acquire(of(10));
    for (int i = 0; i < TIMES; i++) {
      AtomicInteger come = new AtomicInteger();
      FutureTask<Integer> other = CallsTest.start(() -> resize(gpu, 80, come));
      assertThat(resize(gpu, 60, come)).isEqualTo(60);
      assertThat(other.get()).isEqualTo(80);
      assertThat(client.leases())
          .as("time %s", i)
          .map(lease -> lease.request().memory())
          .containsExactly(gpu.request().memory());
      gpu.resize(of(10));
    }
  }

  private static int resize(VirtualGpu gpu, int mebibytes, AtomicInteger come) {
    come.incrementAndGet();
    while (come.get() < 2) {
      Thread.onSpinWait();
    }
    gpu.resize(of(mebibytes));
    return mebibytes;
  }
}
