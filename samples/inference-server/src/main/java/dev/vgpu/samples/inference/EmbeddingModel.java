package dev.vgpu.samples.inference;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession;
import dev.vgpu.request.MemorySize;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Map;
import java.util.Set;

/**
 * all-MiniLM-L6-v2 in its own session: turns texts into vectors of {@value #DIMENSIONS} numbers. It
 * does not know about sharing. Safe for use by several threads.
 */
final class EmbeddingModel implements AutoCloseable {
  /** The length of a vector. */
  static final int DIMENSIONS = 384;

  /**
   * The memory of a loaded session: 23 MB of weights, as read and as packed for the CPU (measured).
   */
  static final MemorySize WEIGHTS = MemorySize.ofMebibytes(48);

  private static final String OUTPUT = "last_hidden_state";

  private final OrtEnvironment environment;
  private final OrtSession session;
  private final CallGate gate = new CallGate();

  /**
   * Loads the model.
   *
   * @param environment the environment of this JVM
   * @param onnx the model file; not kept
   */
  EmbeddingModel(OrtEnvironment environment, byte[] onnx) throws OrtException {
    this.environment = environment;
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      // One call may fill the device: on a CPU, that is all cores. Their threads must sleep between
      // calls, or an idle model would use time that was granted to another.
      options.setIntraOpNumThreads(Runtime.getRuntime().availableProcessors());
      options.setInterOpNumThreads(1);
      options.addConfigEntry("session.intra_op.allow_spinning", "0");
      // Memory patterns plan memory per shape. Every batch has a different shape, so they take
      // twice the memory and gain no speed.
      options.setMemoryPatternOptimization(false);
      if (OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
        options.addCUDA(); // Maven profile gpu
      }
      this.session = environment.createSession(onnx, options);
    }
  }

  /**
   * Computes the vectors, each of length 1. Call it inside the turn.
   *
   * @param texts the texts to embed
   * @param options options of this run only; {@code setTerminate} on them ends it early
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
   * Averages over a text's tokens, without padding, and scales to length 1, as the model was
   * trained.
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

  /** Scaling to length 1 makes the division by the number of tokens unnecessary. */
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
   * Frees the session once no run is inside. Closing a session during a run crashes the JVM, so if
   * a run does not end in time, the session is not freed.
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
