package dev.vgpu.samples.libraries;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.onnx.allminilml6v2q.AllMiniLmL6V2QuantizedEmbeddingModel;
import dev.langchain4j.store.embedding.CosineSimilarity;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Duration;

/** Prints how similar two texts are, with LangChain4j's bundled model under a virtual GPU. */
public final class Similarity {
  private static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder()
          .name("embeddings")
          .preemptionClass(PreemptionClass.ONLINE)
          .memory(MemorySize.ofMebibytes(512))
          .build();

  private Similarity() {}

  /**
   * Runs it.
   *
   * @param args two texts
   */
  public static void main(String[] args) {
    if (args.length != 2) {
      System.err.println("usage: Similarity TEXT TEXT");
      return;
    }
    System.setProperty("OPT_OUT_TRACKING", "true"); // see DjlScores; the tokenizer is DJL's
    System.setProperty("ai.djl.offline", "true");
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(REQUEST)) {
      System.out.println(of(embeddingModel(gpu), args[0], args[1]));
    }
  }

  /** {@return the model; each request is a call that waits at most ten seconds} */
  static EmbeddingModel embeddingModel(VirtualGpu gpu) {
    EmbeddingModel model = new AllMiniLmL6V2QuantizedEmbeddingModel(Runnable::run);
    return new SharedEmbeddingModel(gpu, model, CallOptions.ofTimeout(Duration.ofSeconds(10)));
  }

  /** {@return the cosine of the angle between the embeddings of two texts, -1 to 1} */
  static double of(EmbeddingModel model, String one, String other) {
    Embedding first = model.embed(one).content();
    Embedding second = model.embed(other).content();
    return CosineSimilarity.between(first, second);
  }
}
