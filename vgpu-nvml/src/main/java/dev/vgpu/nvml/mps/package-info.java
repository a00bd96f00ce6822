/** MPS: several processes on one GPU at once, each with a part of its units. */
@NullMarked
package dev.vgpu.nvml.mps;

import org.jspecify.annotations.NullMarked;
