/** Virtual GPUs whose memory quota the kernel module enforces. */
@NullMarked
package dev.vgpu.kmod;

import org.jspecify.annotations.NullMarked;
