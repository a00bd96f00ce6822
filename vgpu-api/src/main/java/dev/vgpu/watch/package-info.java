/**
 * What a pool tells: its physical GPUs, their virtual GPUs and their state, events as they happen,
 * readings of the hardware, and the record of what each virtual GPU used.
 */
@NullMarked
package dev.vgpu.watch;

import org.jspecify.annotations.NullMarked;
