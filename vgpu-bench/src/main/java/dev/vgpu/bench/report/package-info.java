/** Shared parts of the benchmarks: their report, rounds against noise, a check for leftovers. */
@NullMarked
package dev.vgpu.bench.report;

import org.jspecify.annotations.NullMarked;
