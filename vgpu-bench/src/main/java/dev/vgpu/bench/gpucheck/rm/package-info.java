/** The resource manager's part of {@code vgpu gpu-check}: a ledger, and stopped channels. */
@NullMarked
package dev.vgpu.bench.gpucheck.rm;

import org.jspecify.annotations.NullMarked;
