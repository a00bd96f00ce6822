/**
 * GPU sharing for a JVM: open a {@link dev.vgpu.GpuPool}, acquire a {@link dev.vgpu.VirtualGpu} per
 * model, and run calls under it.
 */
@NullMarked
package dev.vgpu;

import org.jspecify.annotations.NullMarked;
