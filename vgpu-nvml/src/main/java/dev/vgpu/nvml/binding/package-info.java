/** NVML as {@code nvml.h} declares it, and nothing else. */
@NullUnmarked
package dev.vgpu.nvml.binding;

import org.jspecify.annotations.NullUnmarked;
