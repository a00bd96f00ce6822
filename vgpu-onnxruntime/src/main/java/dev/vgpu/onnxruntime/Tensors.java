package dev.vgpu.onnxruntime;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxTensorLike;
import dev.vgpu.memory.Shapes;
import java.util.Map;

/** What the inputs of a run tell of its memory. */
final class Tensors {
  private Tensors() {}

  /**
   * {@return the shapes of a run's inputs, in this thread's own {@link Shapes}}
   *
   * @param inputs by name
   * @param names of all inputs of the model, in any fixed order
   */
  static Shapes shapes(Map<String, ? extends OnnxTensorLike> inputs, String[] names) {
    Shapes shapes = Shapes.ofThisThread();
    for (String name : names) {
      OnnxTensorLike input = inputs.get(name);
      if (input == null) {
        shapes.addAbsent();
      } else {
        shapes.add(input.getInfo().getShape());
      }
    }
    return shapes;
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
