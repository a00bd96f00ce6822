/**
 * GPU sharing for a JVM: open a {@link dev.vgpu.GpuPool}, acquire a {@link dev.vgpu.VirtualGpu} per
 * model, and run calls under it.
 *
 * <p>{@link dev.vgpu.request} says what to ask for, {@link dev.vgpu.watch} what the pool's GPUs and
 * virtual GPUs do, and {@link dev.vgpu.backend} which backends there are.
 */
@NullMarked
package dev.vgpu;

import org.jspecify.annotations.NullMarked;
