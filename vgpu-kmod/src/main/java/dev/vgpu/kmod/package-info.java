/** Virtual GPUs that the kernel module holds to their quota. */
@NullMarked
package dev.vgpu.kmod;

import org.jspecify.annotations.NullMarked;
