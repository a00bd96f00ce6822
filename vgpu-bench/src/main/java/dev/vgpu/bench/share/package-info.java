/** Benchmarks of vgpu's promises: shares, quotas, and how soon an urgent tenant gets the GPU. */
@NullMarked
package dev.vgpu.bench.share;

import org.jspecify.annotations.NullMarked;
