package dev.vgpu.nvml;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import java.util.Optional;

/** A GPU whose MIG mode is on: programs run only in its instances. */
public record CutGpu(
    GpuId id, String model, MemorySize memory, MemorySize usableMemory, String provider)
    implements PhysicalGpu {
  /** {@return a GPU as one whose MIG mode is on} */
  public static CutGpu of(PhysicalGpu whole) {
    return new CutGpu(
        whole.id(), whole.model(), whole.memory(), whole.usableMemory(), whole.provider());
  }

  @Override
  public Optional<String> unusableAsWhole() {
    return Optional.of("its MIG mode is on: programs run in instances of it only");
  }
}
