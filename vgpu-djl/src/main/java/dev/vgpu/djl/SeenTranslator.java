package dev.vgpu.djl;

import ai.djl.ndarray.NDList;
import ai.djl.translate.Batchifier;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import ai.djl.translate.TranslatorOptions;
import java.util.List;

/** A translator whose result is seen by {@link LearntMemory} before the engine gets it. */
final class SeenTranslator<I, O> implements Translator<I, O> {
  private final Translator<I, O> translator;
  private final LearntMemory memory;

  SeenTranslator(Translator<I, O> translator, LearntMemory memory) {
    this.translator = translator;
    this.memory = memory;
  }

  @Override
  public NDList processInput(TranslatorContext context, I input) throws Exception {
    return seen(translator.processInput(context, input));
  }

  @Override
  public NDList batchProcessInput(TranslatorContext context, List<I> inputs) throws Exception {
    return seen(translator.batchProcessInput(context, inputs));
  }

  private NDList seen(NDList arrays) {
    memory.see(arrays);
    return arrays;
  }

  @Override
  public O processOutput(TranslatorContext context, NDList arrays) throws Exception {
    return translator.processOutput(context, arrays);
  }

  @Override
  public List<O> batchProcessOutput(TranslatorContext context, NDList arrays) throws Exception {
    return translator.batchProcessOutput(context, arrays);
  }

  @Override
  public void prepare(TranslatorContext context) throws Exception {
    translator.prepare(context);
  }

  @Override
  public Batchifier getBatchifier() {
    return translator.getBatchifier();
  }

  @Override
  public TranslatorOptions getExpansions() {
    return translator.getExpansions();
  }
}
