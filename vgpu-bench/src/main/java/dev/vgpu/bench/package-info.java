/** Benchmarks, each with a reference that is measured in the same run. */
@NullMarked
package dev.vgpu.bench;

import org.jspecify.annotations.NullMarked;
