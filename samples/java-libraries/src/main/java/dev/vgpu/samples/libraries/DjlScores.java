package dev.vgpu.samples.libraries;

import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.TranslateException;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.djl.VgpuDjl;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.samples.onnx.SampleModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * Runs a Deep Java Library model under an online virtual GPU, and prints the scores of two rows.
 */
public final class DjlScores {
  static final int WIDTH = 8;

  private static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder()
          .name("scores")
          .preemptionClass(PreemptionClass.ONLINE)
          .policy(SharePolicy.BURST_SHARE)
          .computePercent(50)
          .memory(MemorySize.ofMebibytes(256))
          .build();

  private DjlScores() {}

  /**
   * Runs it.
   *
   * @param args none
   * @throws Exception if the model cannot be run
   */
  public static void main(String[] args) throws Exception {
    // Must come before DJL's first use. Otherwise DJL reports starts on EC2 to its makers, and
    // downloads native code.
    System.setProperty("OPT_OUT_TRACKING", "true");
    System.setProperty("ai.djl.offline", "true");
    Path file = Files.createTempFile("sample", ".onnx");
    try (GpuPool pool = GpuPool.open()) {
      Files.write(file, SampleModel.of(WIDTH, 64, 3));
      float[] row = {1, 2, 3, 4, 5, 6, 7, 8};
      for (float[] scores : score(pool, file, List.of(row, new float[WIDTH]))) {
        System.out.println(Arrays.toString(scores));
      }
    } finally {
      Files.deleteIfExists(file);
    }
  }

  /**
   * {@return the scores of rows, in order}
   *
   * @param pool the pool of the virtual GPU
   * @param file an ONNX model
   * @param rows of {@value #WIDTH} values
   */
  static List<float[]> score(GpuPool pool, Path file, List<float[]> rows)
      throws IOException, ModelException, TranslateException, InterruptedException {
    // #region djl
    Criteria<float[], float[]> criteria =
        Criteria.builder()
            .setTypes(float[].class, float[].class)
            .optModelPath(file)
            .optEngine("OnnxRuntime")
            .optTranslator(new RowTranslator())
            .build();
    MemorySize weights = MemorySize.ofBytes(Files.size(file));
    try (VirtualGpu gpu = pool.acquire(REQUEST);
        ZooModel<float[], float[]> model =
            VgpuDjl.load(gpu, criteria, weights, CallOptions.defaults());
        Predictor<float[], float[]> predictor = model.newPredictor()) {
      return predictor.batchPredict(rows); // one call of the virtual GPU
    }
    // #endregion djl
  }
}
