/**
 * Benchmarks of what vgpu adds to launches, allocations, measuring, readings, start-up and
 * suspension.
 */
@NullMarked
package dev.vgpu.bench.cost;

import org.jspecify.annotations.NullMarked;
