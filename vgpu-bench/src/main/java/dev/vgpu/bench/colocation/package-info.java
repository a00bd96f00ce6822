/**
 * Inference requests beside training: latency and throughput with and without vgpu, in the same
 * run.
 */
@NullMarked
package dev.vgpu.bench.colocation;

import org.jspecify.annotations.NullMarked;
