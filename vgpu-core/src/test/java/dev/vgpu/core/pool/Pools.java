package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** Pools over GPUs that exist only in tests. */
public final class Pools {
  private static final AtomicInteger made = new AtomicInteger();

  public record TestGpu(GpuId id, MemorySize memory) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize usableMemory() {
      return memory;
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  private Pools() {}

  public static List<TestGpu> gpus(int count) {
    List<TestGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      gpus.add(gpu("test-" + made.incrementAndGet()));
    }
    return gpus;
  }

  static TestGpu gpu(String id) {
    return new TestGpu(new GpuId(id), MemorySize.ofMebibytes(1000));
  }

  static GpuProvider provider(TestGpu gpu) {
    return new GpuProvider() {
      @Override
      public BackendStatus status() {
        return BackendStatus.ofAvailable("test");
      }

      @Override
      public List<PhysicalGpu> gpus() {
        return List.of(gpu);
      }
    };
  }

  /** Opens a pool over new GPUs of 1,000 MiB each. */
  public static GpuPool open(int count) {
    return GpuPool.open(
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(gpus(count)).build());
  }

  public static GpuPool open() {
    return open(1);
  }

  static VirtualGpuRequest.Builder request(PreemptionClass preemptionClass) {
    return VirtualGpuRequest.builder()
        .memory(MemorySize.ofMebibytes(100))
        .preemptionClass(preemptionClass);
  }

  public static VirtualGpuRequest share(PreemptionClass preemptionClass, int percent) {
    return request(preemptionClass).policy(SharePolicy.BURST_SHARE).computePercent(percent).build();
  }

  /** Waits for a condition that another thread fulfils; the test's timeout bounds the wait. */
  public static void await(BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      LockSupport.parkNanos(100_000);
    }
  }

  /** Deletes a run directory as soon as nobody holds its seat. */
  public static void delete(Path runDirectory) throws IOException {
    SeatLock seat;
    do {
      assertThat(Thread.interrupted()).as("the seat is held for ever").isFalse();
      seat = SeatLock.tryTake(runDirectory.resolve("seat.lock"), ProcessIdentity.current()).lock();
    } while (seat == null);
    try (Stream<Path> files = Files.walk(runDirectory)) {
      files.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
    } finally {
      seat.close();
    }
  }
}
