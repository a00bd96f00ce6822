/** The Java side of the CUDA hook. */
@NullMarked
package dev.vgpu.cuda;

import org.jspecify.annotations.NullMarked;
