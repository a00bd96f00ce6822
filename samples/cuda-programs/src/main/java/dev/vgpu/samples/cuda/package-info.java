/**
 * Java programs on the CUDA driver API through JNA: one that does not know about vgpu, one that
 * puts itself under a virtual GPU, and one that serves five models under five virtual GPUs.
 */
@NullMarked
package dev.vgpu.samples.cuda;

import org.jspecify.annotations.NullMarked;
