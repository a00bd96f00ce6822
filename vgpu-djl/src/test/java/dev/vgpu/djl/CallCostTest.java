package dev.vgpu.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.CallCost;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A prediction of a model under a virtual GPU beside the same prediction in a call that its caller
 * makes. The times are printed, but not judged.
 */
class CallCostTest {
  private static final int PREDICTIONS = 1000;

  /** Asks for the shapes, as the model does: DJL makes an object of each when it is asked. */
  private static final class ShapeAsking implements Translator<float[], Float> {
    private final VgpuDjlTest.Sums sums = new VgpuDjlTest.Sums();

    @Override
    public NDList batchProcessInput(TranslatorContext context, List<float[]> inputs) {
      NDList arrays = sums.batchProcessInput(context, inputs);
      if (arrays.get(0).getShape().size() == 0) {
        throw new IllegalStateException("no values");
      }
      return arrays;
    }

    @Override
    public NDList processInput(TranslatorContext context, float[] row) {
      return sums.processInput(context, row);
    }

    @Override
    public Float processOutput(TranslatorContext context, NDList output) {
      return sums.processOutput(context, output);
    }

    @Override
    public List<Float> batchProcessOutput(TranslatorContext context, NDList output) {
      return sums.batchProcessOutput(context, output);
    }

    @Override
    public Batchifier getBatchifier() {
      return sums.getBatchifier();
    }
  }

  @TempDir Path directory;

  @Test
  void aPredictionAllocatesLittleMoreThanACallWithTheSamePrediction() throws Exception {
    Files.write(directory.resolve("sum.onnx"), VgpuDjlTest.sumOfThree());
    Criteria<float[], Float> criteria =
        Criteria.builder()
            .setTypes(float[].class, Float.class)
            .optModelPath(directory.resolve("sum.onnx"))
            .optEngine("OnnxRuntime")
            .optTranslator(new VgpuDjlTest.Sums())
            .build();
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().name("cost").memory(MemorySize.ofMebibytes(256)).build();
    CallOptions options = CallOptions.ofTimeout(Duration.ofSeconds(10));
    CallOptions stated = options.toBuilder().memory(MemorySize.ofMebibytes(1)).build();
    float[] row = {1, 2, 3};
    try (GpuPool pool =
            GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
        VirtualGpu gpu = pool.acquire(request);
        ZooModel<float[], Float> bareModel = criteria.loadModel();
        Predictor<float[], Float> bare = bareModel.newPredictor(new ShapeAsking());
        ZooModel<float[], Float> model =
            VgpuDjl.load(gpu, criteria, MemorySize.ofMebibytes(16), options);
        Predictor<float[], Float> predictor = model.newPredictor()) {
      CallCost[] costs =
          CallCost.of(
              PREDICTIONS,
              () -> bare.predict(row),
              () -> gpu.call(() -> bare.predict(row), stated),
              () -> predictor.predict(row));
      CallCost added = costs[2].above(costs[1]);
      System.out.println(
          "a bare prediction "
              + costs[0]
              + "; gpu.call adds "
              + costs[1].above(costs[0])
              + "; the model adds to that "
              + added);
      assertThat(added.bytes()).isLessThanOrEqualTo(100);
    }
  }
}
