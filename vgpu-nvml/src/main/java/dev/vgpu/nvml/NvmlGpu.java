package dev.vgpu.nvml;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;

/** A GPU as NVML reports it at one moment. Immutable. */
public record NvmlGpu(
    GpuId id, String model, MemorySize memory, MemorySize usableMemory, String provider)
    implements PhysicalGpu {}
