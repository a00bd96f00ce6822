package dev.vgpu.samples.libraries;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.samples.onnx.SampleModel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DjlScoresTest {
  @Test
  void rowsAreScoredInOrderAndNothingIsHeldAfterwards(@TempDir Path directory) throws Exception {
    Path file = Files.write(directory.resolve("m.onnx"), SampleModel.of(DjlScores.WIDTH, 64, 3));
    float[] ones = {1, 1, 1, 1, 1, 1, 1, 1};
    float[] zeros = new float[DjlScores.WIDTH];
    try (GpuPool pool =
        GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build())) {
      List<float[]> forth = DjlScores.score(pool, file, List.of(ones, zeros));
      List<float[]> back = DjlScores.score(pool, file, List.of(zeros, ones));

      assertThat(forth.get(0)).hasSize(DjlScores.WIDTH).isNotEqualTo(forth.get(1));
      assertThat(back.get(0)).isEqualTo(forth.get(1));
      assertThat(back.get(1)).isEqualTo(forth.get(0));
      assertThat(pool.leases()).isEmpty();
    }
  }
}
