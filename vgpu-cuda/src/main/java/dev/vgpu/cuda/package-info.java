/** The CUDA hook: the Java side of it. */
@NullMarked
package dev.vgpu.cuda;

import org.jspecify.annotations.NullMarked;
