package dev.vgpu.samples.inference;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession.RunOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The loaded models of this JVM, by name: one ONNX Runtime environment (a JVM can have only one),
 * one tokenizer, and a session for each model. Safe for use by several threads.
 */
final class ModelStore implements AutoCloseable {
  private final OrtEnvironment environment;
  private final SentenceTokenizer tokenizer;
  private final byte[] onnx;
  private final Map<String, EmbeddingModel> models = new HashMap<>(); // guarded by this
  private boolean closed; // guarded by this

  private ModelStore() throws IOException {
    environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR, "sample");
    tokenizer = new SentenceTokenizer("/all-minilm-l6-v2-q-tokenizer.json");
    onnx = Resources.bytes("/all-minilm-l6-v2-q.onnx");
  }

  /** {@return a store with no model loaded yet} */
  static ModelStore open() throws Exception {
    return NativeLibraries.loadedBy(ModelStore::new);
  }

  /** {@return the tokenizer of all models} */
  SentenceTokenizer tokenizer() {
    return tokenizer;
  }

  /**
   * {@return the model of that name, loaded now if it was not}
   *
   * <p>Loading takes about 60 ms and {@link EmbeddingModel#WEIGHTS} of memory; reserve that first.
   *
   * @throws ModelClosedException if the store is closed
   */
  synchronized EmbeddingModel load(String name) throws OrtException {
    if (closed) {
      throw new ModelClosedException("the store of models", null);
    }
    EmbeddingModel model = models.get(name);
    if (model == null) {
      model = new EmbeddingModel(environment, onnx);
      models.put(name, model);
      warmUp(model);
    }
    return model;
  }

  /**
   * Makes the first runs of a session, which allocate and are slow, so that no client's request is.
   */
  private void warmUp(EmbeddingModel model) throws OrtException {
    List<String> texts = Collections.nCopies(32, "the first runs of a session are slow ones");
    try (RunOptions options = new RunOptions()) {
      for (TokenBatch batch : tokenizer.tokenize(texts)) {
        for (TokenRun run : batch.runs()) {
          model.run(run, options);
        }
      }
    }
  }

  /**
   * Frees all models. Must be called last: every {@link ServedModel}, which could still start a
   * run, must be closed first.
   */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      new ArrayList<>(models.values()).forEach(EmbeddingModel::close);
      tokenizer.close();
    }
  }
}
