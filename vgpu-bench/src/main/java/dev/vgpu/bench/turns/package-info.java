/** Benchmarks in a JVM: turns beside a semaphore and a lock, and decisions of the scheduler. */
@NullMarked
package dev.vgpu.bench.turns;

import org.jspecify.annotations.NullMarked;
