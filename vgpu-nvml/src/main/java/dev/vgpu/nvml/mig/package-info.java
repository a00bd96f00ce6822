/**
 * MIG instances: read, made and destroyed through NVML, and lent to virtual GPUs. Where one goes is
 * decided in {@code plan}.
 */
@NullMarked
package dev.vgpu.nvml.mig;

import org.jspecify.annotations.NullMarked;
