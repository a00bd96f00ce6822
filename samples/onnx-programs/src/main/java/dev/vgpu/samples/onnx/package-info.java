/** Programs that run ONNX models under virtual GPUs; written to be copied. */
@NullMarked
package dev.vgpu.samples.onnx;

import org.jspecify.annotations.NullMarked;
