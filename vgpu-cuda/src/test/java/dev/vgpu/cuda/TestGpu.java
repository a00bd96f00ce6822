package dev.vgpu.cuda;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;

/** A GPU that a provider has found. */
public record TestGpu(GpuId id, String provider) implements PhysicalGpu {
  public static TestGpu named(String name) {
    return new TestGpu(new GpuId(name), "nvml");
  }

  static TestGpu emulated() {
    return new TestGpu(new GpuId("GPU-0"), "emulator");
  }

  @Override
  public String model() {
    return "a GPU";
  }

  @Override
  public MemorySize memory() {
    return MemorySize.ofGibibytes(16);
  }

  @Override
  public MemorySize usableMemory() {
    return memory();
  }
}
