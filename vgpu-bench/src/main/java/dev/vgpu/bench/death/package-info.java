/** Benchmarks of what deaths and stops of processes, the seat among them, cost others. */
@NullMarked
package dev.vgpu.bench.death;

import org.jspecify.annotations.NullMarked;
