package dev.vgpu.kmod;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;

/** The GPU of the tests' leases, also in the virtual machine. */
record TestGpu() implements PhysicalGpu {
  @Override
  public GpuId id() {
    return new GpuId("GPU-1");
  }

  @Override
  public String model() {
    return "a model";
  }

  @Override
  public MemorySize memory() {
    return MemorySize.ofGibibytes(8);
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
