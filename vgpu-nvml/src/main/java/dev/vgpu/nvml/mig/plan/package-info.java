/**
 * Places MIG instances on the GPUs of one node. Pure: no native call, no clock.
 *
 * <p>A GPU is partitioned along its memory slices. An instance takes consecutive memory slices, and
 * some compute slices, which have no position. There are a few hundred ways to partition a GPU. For
 * each of them, an exact search, done once, finds how many of the possible requests it can take
 * ({@link dev.vgpu.nvml.mig.plan.MigOptions}). A request goes where it costs the fewest of these
 * options. No rule of thumb would do: the first slices serve most profiles, yet a lone small
 * instance may belong there.
 */
@NullMarked
package dev.vgpu.nvml.mig.plan;

import org.jspecify.annotations.NullMarked;
