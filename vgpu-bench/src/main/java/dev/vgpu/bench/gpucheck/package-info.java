/**
 * The check on a machine with a GPU: {@code vgpu gpu-check}. Each step is a process of its own, in
 * a session of its own, with its own limit. Findings are written down at once.
 */
@NullMarked
package dev.vgpu.bench.gpucheck;

import org.jspecify.annotations.NullMarked;
