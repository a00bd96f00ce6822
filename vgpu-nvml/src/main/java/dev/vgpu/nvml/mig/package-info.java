/**
 * MIG instances: read, created and destroyed through NVML, and assigned to virtual GPUs. {@code
 * plan} decides where an instance goes.
 */
@NullMarked
package dev.vgpu.nvml.mig;

import org.jspecify.annotations.NullMarked;
