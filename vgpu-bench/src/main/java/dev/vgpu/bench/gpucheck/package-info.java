/**
 * The check on a machine with a GPU: {@code vgpu gpu-check}. Each step is a process of its own, in
 * a session of its own, with its own limit; what it found is written down as it is found.
 */
@NullMarked
package dev.vgpu.bench.gpucheck;

import org.jspecify.annotations.NullMarked;
