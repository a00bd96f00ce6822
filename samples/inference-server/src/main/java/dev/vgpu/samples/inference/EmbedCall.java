package dev.vgpu.samples.inference;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.RunOptions;
import dev.vgpu.PreemptibleCall;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs of the model, as a call that can be cancelled and run again. Whether it ever is cancelled is
 * decided by the class of its virtual GPU, not here.
 *
 * <p>It keeps the runs that it has finished, so that the next attempt goes on from there. That is
 * more than vgpu asks for, and worth it: a call that begins anew each time never ends if online
 * requests come more often than it is long.
 */
final class EmbedCall implements PreemptibleCall<float[][]> {
  private final EmbeddingModel model;
  private final List<TokenRun> runs;
  private final float[][] vectors;
  private int finishedRuns;
  private @Nullable RunOptions attempt; // guarded by this

  /** Makes one for all of a batch. */
  EmbedCall(EmbeddingModel model, TokenBatch batch) {
    this(model, batch.runs(), new float[batch.count()][]);
  }

  /** Makes one for some runs of a batch, which writes each text's vector to its place. */
  EmbedCall(EmbeddingModel model, List<TokenRun> runs, float[][] vectors) {
    this.model = model;
    this.runs = runs;
    this.vectors = vectors;
  }

  // #region cancellable
  @Override
  public float[][] call() throws OrtException {
    // New options for each attempt. Those of a cancelled one still say "terminate", and resetting
    // them could meet a cancel() that comes just as an attempt ends: the next one would then fail
    // though nobody cancelled it.
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
      options.close(); // no cancel() can reach it any more: it would write to freed memory
    }
  }

  /** Ends the attempt at the model's next operator, which is usually within 0.2 ms. */
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
