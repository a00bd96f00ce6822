/**
 * An inference server that embeds vgpu: one virtual GPU per model, and an offline job beside them.
 * Written to be copied, except for the classes that begin with {@code Demo}, which {@code ./vgpu
 * demo} needs.
 */
@NullMarked
package dev.vgpu.samples.inference;

import org.jspecify.annotations.NullMarked;
