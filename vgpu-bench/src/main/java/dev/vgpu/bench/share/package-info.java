/** Benchmarks of what vgpu promises: shares, quotas, and how soon an urgent tenant gets the GPU. */
@NullMarked
package dev.vgpu.bench.share;

import org.jspecify.annotations.NullMarked;
