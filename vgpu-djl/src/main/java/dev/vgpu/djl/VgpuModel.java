package dev.vgpu.djl;

import ai.djl.Device;
import ai.djl.inference.Predictor;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Translator;
import dev.vgpu.CallOptions;
import dev.vgpu.VirtualGpu;

/** A model whose predictions are calls of a virtual GPU. */
final class VgpuModel<I, O> extends ZooModel<I, O> {
  private final VirtualGpu gpu;
  private final ZooModel<I, O> model;
  private final CallOptions options;
  private final Runnable closed;

  VgpuModel(VirtualGpu gpu, ZooModel<I, O> model, CallOptions options, Runnable closed) {
    super(model, model.getTranslator());
    this.gpu = gpu;
    this.model = model;
    this.options = options;
    this.closed = closed;
  }

  /** All other ways to create a predictor call this one. */
  @Override
  public <P, Q> Predictor<P, Q> newPredictor(Translator<P, Q> translator, Device device) {
    Predictor<P, Q> predictor = model.newPredictor(translator, device);
    return new VgpuPredictor<>(gpu, model, translator, device, predictor, options);
  }

  @Override
  public void close() {
    try {
      super.close();
    } finally {
      closed.run();
    }
  }
}
