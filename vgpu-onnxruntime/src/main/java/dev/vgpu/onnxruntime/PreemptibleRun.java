package dev.vgpu.onnxruntime;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.PreemptibleCall;
import org.jspecify.annotations.Nullable;

/** A run that ends at the model's next operator when it is cancelled, and is repeated later. */
final class PreemptibleRun implements PreemptibleCall<OrtSession.Result> {
  /** One attempt. */
  interface Attempt {
    OrtSession.Result run(OrtSession.@Nullable RunOptions options) throws OrtException;
  }

  private final Attempt work;
  private OrtSession.@Nullable RunOptions attempt; // guarded by this

  PreemptibleRun(Attempt work) {
    this.work = work;
  }

  @Override
  public OrtSession.Result call() throws OrtException {
    // New options for each attempt: "terminate" stays set in those of a cancelled attempt, and a
    // late cancel must not reach the next attempt.
    OrtSession.RunOptions options = new OrtSession.RunOptions();
    synchronized (this) {
      attempt = options;
    }
    try {
      return work.run(options);
    } finally {
      synchronized (this) {
        attempt = null;
      }
      options.close(); // from now on no cancel reaches the options: it would write to freed memory
    }
  }

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
}
