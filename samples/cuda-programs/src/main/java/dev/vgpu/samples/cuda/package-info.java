/**
 * Programs in Java on the CUDA driver API through JNA: one that knows nothing of vgpu, one that
 * puts itself under a virtual GPU, and one that serves five models under five.
 */
@NullMarked
package dev.vgpu.samples.cuda;

import org.jspecify.annotations.NullMarked;
