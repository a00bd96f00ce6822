/** GPUs as NVML tells of them. */
@NullMarked
package dev.vgpu.nvml;

import org.jspecify.annotations.NullMarked;
