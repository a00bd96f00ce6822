/** Finds and reads GPUs through NVML. */
@NullMarked
package dev.vgpu.nvml;

import org.jspecify.annotations.NullMarked;
