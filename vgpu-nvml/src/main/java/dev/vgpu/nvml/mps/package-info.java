/** MPS: several processes on one GPU concurrently, each on a part of its SMs. */
@NullMarked
package dev.vgpu.nvml.mps;

import org.jspecify.annotations.NullMarked;
