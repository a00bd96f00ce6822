package dev.vgpu.core.pool;

import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuUsage;
import dev.vgpu.VirtualGpuRequest;

/** A {@link GpuLease} as it was at one moment. */
record LeaseSnapshot(String id, GpuId gpu, VirtualGpuRequest request, long pid, GpuUsage usage)
    implements GpuLease {}
