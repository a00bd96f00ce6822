package dev.vgpu.micrometer;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A GPU of 64 GiB that exists only in a test; each pool has its own. */
record TestGpu(GpuId id) implements PhysicalGpu {
  private static final AtomicInteger made = new AtomicInteger();

  static TestGpu next() {
    return new TestGpu(new GpuId("GPU-test-" + made.incrementAndGet()));
  }

  static GpuPool pool(TestGpu... gpus) {
    return GpuPool.open(
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(List.of(gpus)).build());
  }

  static VirtualGpuRequest.Builder request(String name) {
    return VirtualGpuRequest.builder().name(name).memory(MemorySize.ofMebibytes(256));
  }

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
