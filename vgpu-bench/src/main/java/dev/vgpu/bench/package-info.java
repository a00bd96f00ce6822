/** Benchmarks: every figure beside a reference that was measured in the same run. */
@NullMarked
package dev.vgpu.bench;

import org.jspecify.annotations.NullMarked;
