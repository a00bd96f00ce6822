/**
 * Programs in Java on the CUDA driver API through JNA: one that knows nothing of vgpu, and one that
 * puts itself under a virtual GPU.
 */
@NullMarked
package dev.vgpu.samples.cuda;

import org.jspecify.annotations.NullMarked;
