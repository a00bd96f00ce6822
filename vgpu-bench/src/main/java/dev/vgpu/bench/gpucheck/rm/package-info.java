/**
 * The resource manager's part of {@code vgpu gpu-check}: a ledger, stopped channels, and {@code
 * vgpu-turns}.
 */
@NullMarked
package dev.vgpu.bench.gpucheck.rm;

import org.jspecify.annotations.NullMarked;
