/**
 * Models of the Deep Java Library whose predictions are calls of a virtual GPU: {@link
 * dev.vgpu.djl.VgpuDjl}.
 */
@NullMarked
package dev.vgpu.djl;

import org.jspecify.annotations.NullMarked;
