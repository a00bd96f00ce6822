package dev.vgpu.samples.inference;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.RunOptions;
import dev.vgpu.PreemptibleCall;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs of the model, as a call that can be cancelled and repeated. The class of its virtual GPU
 * decides whether it is ever cancelled.
 *
 * <p>It keeps the runs that it has finished, so that the next attempt continues from there. vgpu
 * does not require that, but it pays: a call that starts from the beginning each time never ends if
 * online requests arrive at shorter intervals than the call takes.
 */
final class EmbedCall implements PreemptibleCall<float[][]> {
  private final EmbeddingModel model;
  private final List<TokenRun> runs;
  private final float[][] vectors;
  private int finishedRuns;
  private @Nullable RunOptions attempt; // guarded by this

  /** Creates a call for a whole batch. */
  EmbedCall(EmbeddingModel model, TokenBatch batch) {
    this(model, batch.runs(), new float[batch.count()][]);
  }

  /** Creates a call for some runs of a batch. It writes each text's vector to its place. */
  EmbedCall(EmbeddingModel model, List<TokenRun> runs, float[][] vectors) {
    this.model = model;
    this.runs = runs;
    this.vectors = vectors;
  }

  // #region cancellable
  @Override
  public float[][] call() throws OrtException {
    // New options for each attempt. In those of a cancelled attempt, "terminate" is still set.
    // Resetting them could race with a cancel() at the end of an attempt: the next attempt would
    // then fail without having been cancelled.
    RunOptions options = new RunOptions();
    synchronized (this) {
      attempt = options;
    }
    try {
      for (; finishedRuns < runs.size(); finishedRuns++) {
        TokenRun run = runs.get(finishedRuns);
        float[][] found = model.run(run, options);
        for (int row = 0; row < found.length; row++) {
          vectors[run.text(row)] = found[row];
        }
      }
      return vectors;
    } finally {
      synchronized (this) {
        attempt = null;
      }
      options.close(); // now no cancel() can reach the options: it would write to freed memory
    }
  }

  /** Ends the attempt at the model's next operator, usually within 0.2 ms. */
  @Override
  public synchronized void cancel() {
    if (attempt != null) {
      try {
        attempt.setTerminate(true);
      } catch (OrtException e) {
        throw new IllegalStateException("ONNX Runtime did not take the cancellation", e);
      }
    }
  }
  // #endregion cancellable
}
