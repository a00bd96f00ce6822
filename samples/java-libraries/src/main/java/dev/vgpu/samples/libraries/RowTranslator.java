package dev.vgpu.samples.libraries;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.NoBatchifyTranslator;
import ai.djl.translate.TranslatorContext;

/** Translates between a row and the arrays of a model whose input is rows of floats. */
final class RowTranslator implements NoBatchifyTranslator<float[], float[]> {
  @Override
  public NDList processInput(TranslatorContext context, float[] row) {
    NDArray array = context.getNDManager().create(row, new Shape(1, row.length));
    return new NDList(array);
  }

  @Override
  public float[] processOutput(TranslatorContext context, NDList output) {
    return output.singletonOrThrow().toFloatArray();
  }
}
