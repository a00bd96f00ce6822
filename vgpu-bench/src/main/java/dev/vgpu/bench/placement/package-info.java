/** Benchmarks of placement: MIG instances on a GPU, and virtual GPUs on a cluster. */
@NullMarked
package dev.vgpu.bench.placement;

import org.jspecify.annotations.NullMarked;
