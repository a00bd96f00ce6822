/**
 * Benchmarks of what vgpu adds: to launches, allocations, measuring, readings, starts and moves.
 */
@NullMarked
package dev.vgpu.bench.cost;

import org.jspecify.annotations.NullMarked;
