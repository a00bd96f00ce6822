package dev.vgpu.djl;

import ai.djl.Device;
import ai.djl.inference.Predictor;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Translator;
import dev.vgpu.CallOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.ModelWeights;

/** A model whose predictions are calls of a virtual GPU. */
final class VgpuModel<I, O> extends ZooModel<I, O> {
  private final ZooModel<I, O> model;
  private final ModelWeights weights;
  private final LearntMemory memory;

  VgpuModel(VirtualGpu gpu, ZooModel<I, O> model, CallOptions options, ModelWeights weights) {
    super(model, model.getTranslator());
    this.model = model;
    this.weights = weights;
    this.memory = new LearntMemory(gpu, weights, options);
  }

  /** All other ways to create a predictor call this one. */
  @Override
  public <P, Q> Predictor<P, Q> newPredictor(Translator<P, Q> translator, Device device) {
    Predictor<P, Q> predictor =
        model.newPredictor(new SeenTranslator<>(translator, memory), device);
    return new VgpuPredictor<>(memory, model, translator, device, predictor);
  }

  @Override
  public void close() {
    try {
      super.close();
    } finally {
      weights.close();
    }
  }
}
