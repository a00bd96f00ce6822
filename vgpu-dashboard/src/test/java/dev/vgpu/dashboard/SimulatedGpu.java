package dev.vgpu.dashboard;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.List;

/** A GPU of 80 GiB without a device: only calls in this JVM use it. Its model is markup. */
record SimulatedGpu(GpuId id) implements PhysicalGpu {
  /** Sets a variable of a page that takes it for markup. */
  static final String MODEL = "<img src=x onerror=\"window.wasMarkup=1\"><b>model</b>";

  /** A pool of this JVM with so many GPUs. */
  static GpuPool pool(int count) {
    List<PhysicalGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      gpus.add(new SimulatedGpu(new GpuId("GPU-simulated-" + i)));
    }
    return GpuPool.open(
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(gpus).build());
  }

  @Override
  public String model() {
    return MODEL;
  }

  @Override
  public MemorySize memory() {
    return MemorySize.ofGibibytes(80);
  }

  @Override
  public MemorySize usableMemory() {
    return memory();
  }

  @Override
  public String provider() {
    return "simulated";
  }
}
