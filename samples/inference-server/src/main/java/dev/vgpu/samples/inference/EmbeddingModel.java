package dev.vgpu.samples.inference;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession;
import dev.vgpu.MemorySize;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Map;
import java.util.Set;

/**
 * all-MiniLM-L6-v2 in a session of its own: texts to vectors of {@value #DIMENSIONS} numbers. Knows
 * nothing of sharing. Safe for use by several threads.
 */
final class EmbeddingModel implements AutoCloseable {
  /** The length of a vector. */
  static final int DIMENSIONS = 384;

  /**
   * What a loaded session holds: 23 MB of weights, as read and as packed for the CPU (measured).
   */
  static final MemorySize WEIGHTS = MemorySize.ofMebibytes(48);

  private static final String OUTPUT = "last_hidden_state";

  private final OrtEnvironment environment;
  private final OrtSession session;
  private final CallGate gate = new CallGate();

  /**
   * Loads the model.
   *
   * @param environment the one of this JVM
   * @param onnx the model file; not kept
   */
  EmbeddingModel(OrtEnvironment environment, byte[] onnx) throws OrtException {
    this.environment = environment;
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      // One call may fill the device: on a CPU that is all cores, and their threads must sleep
      // between calls, or an idle model eats what another one was granted.
      options.setIntraOpNumThreads(Runtime.getRuntime().availableProcessors());
      options.setInterOpNumThreads(1);
      options.addConfigEntry("session.intra_op.allow_spinning", "0");
      // Plans memory per shape. Every batch has another shape: twice the memory, and no faster.
      options.setMemoryPatternOptimization(false);
      if (OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
        options.addCUDA(); // Maven profile gpu
      }
      this.session = environment.createSession(onnx, options);
    }
  }

  /**
   * Computes the vectors, of length 1 each. Call it inside the turn.
   *
   * @param texts what to embed
   * @param options of this run only; {@code setTerminate} on them ends it early
   * @return a vector per text
   * @throws OrtException also if the run was terminated
   * @throws ModelClosedException if the model is closed
   */
  float[][] run(TokenRun texts, OrtSession.RunOptions options) throws OrtException {
    if (!gate.tryEnter()) {
      throw new ModelClosedException("the session", null);
    }
    long[] shape = {texts.count(), texts.length()};
    long[] types = new long[texts.ids().length]; // 0: no text is a pair
    try (OnnxTensor ids = tensor(texts.ids(), shape);
        OnnxTensor mask = tensor(texts.mask(), shape);
        OnnxTensor type = tensor(types, shape);
        OrtSession.Result result =
            session.run(
                Map.of("input_ids", ids, "attention_mask", mask, "token_type_ids", type),
                Set.of(OUTPUT),
                options)) {
      return pool(((OnnxTensor) result.get(0)).getFloatBuffer(), texts);
    } finally {
      gate.leave();
    }
  }

  private OnnxTensor tensor(long[] values, long[] shape) throws OrtException {
    return OnnxTensor.createTensor(environment, LongBuffer.wrap(values), shape);
  }

  /**
   * The mean over a text's tokens, without padding, scaled to length 1: as the model was trained.
   */
  private static float[][] pool(FloatBuffer hidden, TokenRun texts) {
    float[] token = new float[DIMENSIONS];
    float[][] vectors = new float[texts.count()][DIMENSIONS];
    for (int i = 0; i < texts.ids().length; i++) {
      if (texts.mask()[i] == 1) {
        float[] vector = vectors[i / texts.length()];
        hidden.get(i * DIMENSIONS, token);
        for (int d = 0; d < DIMENSIONS; d++) {
          vector[d] += token[d];
        }
      }
    }
    for (float[] vector : vectors) {
      normalise(vector);
    }
    return vectors;
  }

  /** Scaling to length 1 makes the division by the number of tokens needless. */
  private static void normalise(float[] vector) {
    double sum = 0;
    for (float value : vector) {
      sum += value * value;
    }
    float scale = (float) (1 / Math.sqrt(sum));
    for (int d = 0; d < vector.length; d++) {
      vector[d] *= scale;
    }
  }

  /**
   * Frees the session once no run is inside. A session that is closed under a run takes the JVM
   * down with it; so if one does not end in time, the session is left as it is.
   */
  @Override
  public void close() {
    if (gate.closeAndAwait()) {
      try {
        session.close();
      } catch (OrtException e) {
        throw new IllegalStateException("ONNX Runtime did not close a session", e);
      }
    }
  }
}
