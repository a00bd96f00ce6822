/**
 * ONNX Runtime sessions whose runs are calls of a virtual GPU: {@link
 * dev.vgpu.onnxruntime.VgpuOrt}.
 */
@NullMarked
package dev.vgpu.onnxruntime;

import org.jspecify.annotations.NullMarked;
