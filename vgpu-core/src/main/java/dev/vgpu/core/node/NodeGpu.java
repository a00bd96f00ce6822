package dev.vgpu.core.node;

import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.watch.PhysicalGpu;

/**
 * One GPU of a node, and the seat that guards this JVM's gates on it, whichever process decides
 * about turns.
 *
 * @param gpu the GPU
 * @param seat guards the gates of this JVM
 */
public record NodeGpu(PhysicalGpu gpu, GpuSeat seat) {}
