/**
 * The backends for CUDA programs: the hook, and green contexts on top of it. {@code hook} is the
 * seat's side, {@code attach} puts this JVM under leases, and {@code suspend} moves programs off
 * the GPU. These stand on {@code files}, {@code pages} and {@code process}.
 */
@NullMarked
package dev.vgpu.cuda;

import org.jspecify.annotations.NullMarked;
