/**
 * The backends of CUDA programs: the hook, and green contexts beneath it. From above: {@code hook}
 * is the seat's side, {@code attach} puts this JVM under leases, {@code suspend} moves programs off
 * the GPU; {@code files}, {@code pages} and {@code process} are what these stand on.
 */
@NullMarked
package dev.vgpu.cuda;

import org.jspecify.annotations.NullMarked;
