/** A node under chaos for hours: {@code vgpu soak}, its samples, and what grows or drifts. */
@NullMarked
package dev.vgpu.bench.chaos.soak;

import org.jspecify.annotations.NullMarked;
