package dev.vgpu.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The module's README includes this code. */
class ReadmeTest {
  @Test
  void aSessionPerModel(@TempDir Path directory) throws Exception {
    Path model = Files.write(directory.resolve("model.onnx"), TestModel.product(1));
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    GpuPoolOptions alone = GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build();
    try (GpuPool pool = GpuPool.open(alone);
        OnnxTensor x = OnnxTensor.createTensor(environment, new float[][] {{1, 2}});
        OnnxTensor w = OnnxTensor.createTensor(environment, new float[][] {{3}, {4}})) {
      // #region session
      VirtualGpuRequest request =
          VirtualGpuRequest.builder()
              .name("embed")
              .memory(MemorySize.ofGibibytes(1))
              .preemptionClass(PreemptionClass.ONLINE)
              .build();
      try (VirtualGpu gpu = pool.acquire(request);
          OrtSession.SessionOptions options = new OrtSession.SessionOptions();
          VgpuSession session = VgpuOrt.session(gpu, environment, model, options);
          OrtSession.Result result = session.run(Map.of("x", x, "w", w))) {
        assertThat(result.get(0).getValue()).isEqualTo(new float[][] {{11}});
      }
      // #endregion session
    }
  }
}
