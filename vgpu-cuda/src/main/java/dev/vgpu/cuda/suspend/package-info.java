/** Suspends and resumes CUDA processes with the driver's checkpoints. */
@NullMarked
package dev.vgpu.cuda.suspend;

import org.jspecify.annotations.NullMarked;
