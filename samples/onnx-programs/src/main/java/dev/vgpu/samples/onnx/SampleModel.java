package dev.vgpu.samples.onnx;

import ai.onnx.proto.OnnxMl.ModelProto;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.Random;
import org.tribuo.util.onnx.ONNXContext;
import org.tribuo.util.onnx.ONNXOperators;
import org.tribuo.util.onnx.ONNXRef;

/**
 * A multi-layer perceptron with generated weights, so that the samples need no model file. The rows
 * of its input {@value #INPUT} and of its output have the same number of values.
 */
public final class SampleModel {
  /** The name of the input. */
  public static final String INPUT = "rows";

  /** The name of the output. */
  public static final String OUTPUT = "scores";

  private static final int IR_VERSION = 6;

  private SampleModel() {}

  /**
   * Writes a model.
   *
   * @param width the values of a row; at least 1
   * @param hidden the values of a row between the layers; at least 1
   * @param layers how many layers; at least 2
   * @return the bytes of an ONNX file, the same each time
   */
  public static byte[] of(int width, int hidden, int layers) {
    ONNXContext graph = new ONNXContext();
    graph.setName("perceptron");
    Random random = new Random(20);
    ONNXRef<?> values = graph.floatInput(INPUT, width);
    for (int layer = 0; layer < layers; layer++) {
      int in = layer == 0 ? width : hidden;
      int out = layer == layers - 1 ? width : hidden;
      ONNXRef<?> weights =
          graph.floatTensor("w" + layer, List.of(in, out), to -> fill(to, random, in));
      values =
          values
              .apply(ONNXOperators.GEMM, weights, "product" + layer)
              .apply(ONNXOperators.SIGMOID, "layer" + layer);
    }
    graph.assignTo(values, graph.floatOutput(OUTPUT, width));
    return ModelProto.newBuilder()
        .setIrVersion(IR_VERSION)
        .addOpsetImport(ONNXOperators.getOpsetProto())
        .setGraph(graph.buildGraph())
        .build()
        .toByteArray();
  }

  private static void fill(FloatBuffer to, Random random, int inputs) {
    while (to.hasRemaining()) {
      to.put((float) (random.nextGaussian() / Math.sqrt(inputs)));
    }
    to.flip();
  }
}
