package dev.vgpu.samples.inference;

import ai.onnxruntime.OrtException;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * One model and its virtual GPU. A server has one of these per model, each with its own share,
 * class and quota. Safe for use by several threads.
 */
final class ServedModel implements AutoCloseable {
  /**
   * How long a request waits for its turn before it is refused; by then its client has given up.
   */
  static final Duration PATIENCE = Duration.ofSeconds(10);

  private final String name;
  private final SentenceTokenizer tokenizer;
  private final EmbeddingModel model;
  private final Turns turns;
  private final Runnable closeTurns;
  private final @Nullable VirtualGpu gpu;
  private final CallGate gate = new CallGate();
  private final Set<EmbedCall> inside = ConcurrentHashMap.newKeySet();
  private final LongAdder delivered = new LongAdder();

  private ServedModel(String name, ModelStore store, Turns turns, VirtualGpu gpu)
      throws OrtException {
    this.name = name;
    this.tokenizer = store.tokenizer();
    this.model = store.load(name);
    this.turns = turns;
    this.closeTurns = gpu::close;
    this.gpu = gpu;
  }

  /** For the demo's comparison: a model without a virtual GPU. */
  ServedModel(String name, ModelStore store, Turns turns, Runnable closeTurns) throws OrtException {
    this.name = name;
    this.tokenizer = store.tokenizer();
    this.model = store.load(name);
    this.turns = turns;
    this.closeTurns = closeTurns;
    this.gpu = null;
  }

  /**
   * Acquires a virtual GPU and loads the model under it.
   *
   * @param pool the pool of the virtual GPU
   * @param request the model's terms; its name is the model's
   * @param store the store that loads the model
   * @return the model, ready
   * @throws GpuCapacityException if the share or the quota does not fit beside the others
   */
  static ServedModel open(GpuPool pool, VirtualGpuRequest request, ModelStore store)
      throws Exception {
    return open(pool, request, store, turns -> turns);
  }

  /** Same as above, with a wrapper around each call. */
  static ServedModel open(
      GpuPool pool, VirtualGpuRequest request, ModelStore store, UnaryOperator<Turns> around)
      throws Exception {
    // #region reserve
    VirtualGpu gpu = pool.acquire(request);
    try {
      // Reserve before loading: afterwards the memory is taken, whether it fits or not. The
      // reservation is held until the virtual GPU is closed; the rest of the quota is for calls.
      if (gpu.tryReserve(EmbeddingModel.WEIGHTS).isEmpty()) {
        throw new GpuCapacityException(
            "the model does not fit its quota: weights=" + EmbeddingModel.WEIGHTS + " " + request,
            List.of());
      }
      return new ServedModel(request.name(), store, around.apply(gpu::call), gpu);
    } catch (Throwable e) {
      gpu.close();
      throw e;
    }
    // #endregion reserve
  }

  /** {@return the name by which requests address it} */
  String name() {
    return name;
  }

  /** {@return its virtual GPU; empty in the demo's comparison without any} */
  Optional<VirtualGpu> gpu() {
    return Optional.ofNullable(gpu);
  }

  /** {@return the number of texts embedded so far} */
  long delivered() {
    return delivered.sum();
  }

  /** {@return the batches for the texts; does not wait for the GPU} */
  List<TokenBatch> tokenize(List<String> texts) {
    return tokenizer.tokenize(texts);
  }

  /**
   * Embeds a request's texts. Blocks until it gets the turn, at most {@link #PATIENCE} per batch.
   *
   * @param texts at least one
   * @return a vector per text, in order
   * @throws dev.vgpu.GpuTimeoutException if it gets no turn in time
   * @throws ModelClosedException if the model is closed, before or meanwhile
   */
  List<float[]> embed(List<String> texts) throws Exception {
    List<float[]> vectors = new ArrayList<>(texts.size());
    // #region call
    for (TokenBatch batch : tokenize(texts)) {
      CallOptions options =
          CallOptions.builder().memory(batch.peakMemory()).timeout(PATIENCE).build();
      // One call for the whole batch: once started, it finishes before another request's starts.
      float[][] found = new float[batch.count()][];
      embed(batch.runs(), found, options);
      vectors.addAll(Arrays.asList(found));
      delivered.add(found.length);
    }
    // #endregion call
    return vectors;
  }

  /**
   * Embeds a batch, for a job that is not urgent. Blocks until it gets the turn, without bound.
   *
   * @param batch from {@link #tokenize}
   * @return a vector per text, in order
   * @throws ModelClosedException if the model is closed, before or meanwhile
   */
  float[][] embed(TokenBatch batch) throws Exception {
    float[][] vectors = new float[batch.count()][];
    for (TokenRun run : batch.runs()) {
      // One call per run: turns change hands between calls, so the shorter the calls, the closer
      // all tenants come to their shares. The cost of a call is negligible beside some
      // milliseconds.
      embed(List.of(run), vectors, CallOptions.ofMemory(run.peakMemory()));
    }
    delivered.add(vectors.length);
    return vectors;
  }

  private void embed(List<TokenRun> runs, float[][] vectors, CallOptions options) throws Exception {
    EmbedCall call = new EmbedCall(model, runs, vectors);
    if (!gate.tryEnter()) {
      throw new ModelClosedException(name, null);
    }
    inside.add(call);
    try {
      turns.call(call, options);
    } catch (OrtException | IllegalStateException e) {
      if (gate.isClosed()) { // the exception is a consequence of the closing
        throw new ModelClosedException(name, e);
      }
      throw e;
    } finally {
      inside.remove(call);
      gate.leave();
    }
  }

  /**
   * Starts closing: no call is admitted, waiting calls fail, running ones are cancelled. Does not
   * wait, so that when several models are closed, none gets the turn of one closed before it.
   */
  void stop() {
    gate.close();
    closeTurns.run();
    inside.forEach(EmbedCall::cancel);
  }

  /**
   * Ends the model's use of the GPU; waits for its running calls, at most a second. The loaded
   * session stays in the store.
   */
  @Override
  public void close() {
    stop();
    gate.closeAndAwait();
  }
}
