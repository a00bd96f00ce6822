package dev.vgpu.core.node;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.core.turn.GpuSeat;

/**
 * One GPU of a node, and the seat that guards this JVM's gates on it, whichever process decides
 * about turns.
 *
 * @param gpu the GPU
 * @param seat guards the gates of this JVM
 */
public record NodeGpu(PhysicalGpu gpu, GpuSeat seat) {}
