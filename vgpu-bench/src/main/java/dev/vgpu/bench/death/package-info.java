/**
 * Benchmarks of what other processes notice when a process, or the seat's holder, dies or is
 * stopped.
 */
@NullMarked
package dev.vgpu.bench.death;

import org.jspecify.annotations.NullMarked;
