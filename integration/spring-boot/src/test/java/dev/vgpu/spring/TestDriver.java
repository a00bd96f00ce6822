package dev.vgpu.spring;

import dev.vgpu.backend.BackendStatus;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.request.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;

/** A driver of one GPU of 64 GiB, which is lost and comes back when a test says so. */
public final class TestDriver implements GpuProvider {
  /** The GPU. */
  static final GpuId GPU = new GpuId("GPU-spring-test");

  private static final Set<GpuHealthListener> listeners = new CopyOnWriteArraySet<>();

  private record Device(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(64);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  /** Made by the service loader. */
  public TestDriver() {}

  static void turn(GpuHealth health, String reason) {
    listeners.forEach(listener -> listener.changed(GPU, health, reason));
  }

  @Override
  public BackendStatus status() {
    return BackendStatus.ofAvailable("test");
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return List.of(new Device(GPU));
  }

  @Override
  public GpuPool.Listening watch(GpuHealthListener listener) {
    listeners.add(listener);
    return () -> listeners.remove(listener);
  }
}
