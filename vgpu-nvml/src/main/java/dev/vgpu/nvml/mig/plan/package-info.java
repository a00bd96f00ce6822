/**
 * The placement of MIG instances on the GPUs of one node. Pure: no native call, no clock.
 *
 * <p>A GPU is cut along its memory slices. A placement takes consecutive memory slices, and some
 * compute slices, which have no place. There are a few hundred ways to cut a GPU. For each of them
 * an exact search finds once how many of the possible requests it can take ({@link
 * dev.vgpu.nvml.mig.plan.MigOptions}). A request goes where it costs the fewest of these options.
 * No rule of thumb is followed: the first slices serve most kinds, yet a lone small instance may
 * belong there.
 */
@NullMarked
package dev.vgpu.nvml.mig.plan;

import org.jspecify.annotations.NullMarked;
