/** Benchmarks of what the death or stop of a process, or of the seat's holder, costs others. */
@NullMarked
package dev.vgpu.bench.death;

import org.jspecify.annotations.NullMarked;
