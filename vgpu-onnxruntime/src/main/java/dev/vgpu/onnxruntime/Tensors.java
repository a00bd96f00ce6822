package dev.vgpu.onnxruntime;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxTensorLike;
import dev.vgpu.memory.Shapes;
import java.util.Map;
import java.util.TreeMap;

/** What the inputs of a run tell of its memory. */
final class Tensors {
  private Tensors() {}

  /** {@return the shapes, in the order of the inputs' names} */
  static Shapes shapes(Map<String, ? extends OnnxTensorLike> inputs) {
    long[][] each = new long[inputs.size()][];
    int count = 0;
    for (OnnxTensorLike input : new TreeMap<String, OnnxTensorLike>(inputs).values()) {
      each[count++] = input.getInfo().getShape();
    }
    return Shapes.of(each);
  }

  /** {@return the bytes of the tensors among the inputs, a lower bound for the run} */
  static long bytes(Map<String, ? extends OnnxTensorLike> inputs) {
    long bytes = 0;
    for (OnnxTensorLike input : inputs.values()) {
      if (input instanceof OnnxTensor tensor) {
        bytes += tensor.getInfo().getNumElements() * tensor.getInfo().type.size;
      }
    }
    return bytes;
  }
}
