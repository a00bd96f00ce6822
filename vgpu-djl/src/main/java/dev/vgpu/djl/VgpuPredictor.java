package dev.vgpu.djl;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.inference.streaming.StreamingTranslator;
import ai.djl.metric.Metrics;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import java.util.List;
import java.util.concurrent.Callable;

/** Runs each prediction of the engine's predictor in a call. */
final class VgpuPredictor<I, O> extends Predictor<I, O> {
  private final LearntMemory memory;
  private final Predictor<I, O> predictor;

  VgpuPredictor(
      LearntMemory memory,
      Model model,
      Translator<I, O> translator,
      Device device,
      Predictor<I, O> predictor) {
    super(model, translator, device, false);
    this.memory = memory;
    this.predictor = predictor;
  }

  @Override
  public O predict(I input) throws TranslateException {
    return call(() -> predictor.predict(input), 1);
  }

  @Override
  public List<O> batchPredict(List<I> inputs) throws TranslateException {
    return call(() -> predictor.batchPredict(inputs), inputs.size());
  }

  private <T> T call(Callable<T> prediction, int inputs) throws TranslateException {
    try {
      return memory.call(prediction, inputs);
    } catch (TranslateException | RuntimeException e) {
      throw e;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new TranslateException("interrupted while waiting: virtualGpu=" + memory.gpu().id(), e);
    } catch (Exception e) {
      throw new TranslateException(e);
    }
  }

  /** A stream is processed while it is read, after the call has ended. */
  @Override
  public boolean supportsStreaming() {
    return false;
  }

  @Override
  public StreamingTranslator.StreamOutput<O> streamingPredict(I input) {
    throw new UnsupportedOperationException(
        "a stream's work would go on after its call: virtualGpu=" + memory.gpu().id());
  }

  @Override
  public void setMetrics(Metrics metrics) {
    predictor.setMetrics(metrics);
  }

  @Override
  public void close() {
    predictor.close();
    super.close();
  }
}
