/**
 * Meters of pools, virtual GPUs and devices for Micrometer: {@link
 * dev.vgpu.micrometer.VgpuMetrics}.
 */
@NullMarked
package dev.vgpu.micrometer;

import org.jspecify.annotations.NullMarked;
