package dev.vgpu.nvml;

import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;

/** A GPU as NVML reports it at one moment. Immutable. */
public record NvmlGpu(
    GpuId id, String model, MemorySize memory, MemorySize usableMemory, String provider)
    implements PhysicalGpu {}
