/** What several benchmarks share: their report, rounds against noise, and a look at leftovers. */
@NullMarked
package dev.vgpu.bench.report;

import org.jspecify.annotations.NullMarked;
