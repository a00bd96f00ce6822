/**
 * Where MIG instances go on the GPUs of one node. Pure: no native call, no clock.
 *
 * <p>A GPU is cut along its memory slices; a placement takes some that follow one another, and some
 * compute slices, which have no place. There are a few hundred ways to cut one, so for each of them
 * it is worked out once, by exact search, how many of the requests that may come it can take
 * ({@link dev.vgpu.nvml.mig.MigOptions}). A request goes where the least of that is lost. No rule
 * of thumb is followed: the first slices serve most kinds, yet a lone small instance may belong
 * there.
 */
@NullMarked
package dev.vgpu.nvml.mig;

import org.jspecify.annotations.NullMarked;
