package dev.vgpu.samples.libraries;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import org.junit.jupiter.api.Test;

class SimilarityTest {
  @Test
  void textsOfOneMeaningAreMoreAlikeAndEachRequestIsACall() {
    try (GpuPool pool =
        GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build())) {
      VirtualGpu gpu =
          pool.acquire(
              VirtualGpuRequest.builder()
                  .name("embeddings")
                  .memory(MemorySize.ofMebibytes(512))
                  .build());
      EmbeddingModel model = Similarity.embeddingModel(gpu);

      double alike = Similarity.of(model, "a cat sits on the mat", "a kitten lies on a rug");
      double unlike = Similarity.of(model, "a cat sits on the mat", "taxes are due in April");

      assertThat(alike).isGreaterThan(unlike + 0.2);
      assertThat(model.dimension()).isEqualTo(384);
      assertThat(gpu.usage().calls()).isEqualTo(4);
      assertThat(
              model.embedAll(List.of(TextSegment.from("one"), TextSegment.from("two"))).content())
          .hasSize(2);
      assertThat(gpu.usage().calls()).isEqualTo(5);

      gpu.close();
      assertThatThrownBy(() -> model.embed("too late")).isInstanceOf(IllegalStateException.class);
    }
  }
}
