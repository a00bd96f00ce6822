/**
 * The check of a machine with a GPU: {@code vgpu gpu-check}. Each step is a separate process, in
 * its own session, with its own time limit. Findings are written at once.
 */
@NullMarked
package dev.vgpu.bench.gpucheck;

import org.jspecify.annotations.NullMarked;
