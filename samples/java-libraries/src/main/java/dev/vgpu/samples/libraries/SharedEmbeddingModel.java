package dev.vgpu.samples.libraries;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.output.Response;
import dev.vgpu.CallOptions;
import dev.vgpu.VirtualGpu;
import java.util.List;

/**
 * A LangChain4j embedding model under a virtual GPU: each request is a call. It can replace the
 * model wherever LangChain4j expects one. It is as thread-safe as the model.
 */
public final class SharedEmbeddingModel implements EmbeddingModel {
  private final VirtualGpu gpu;
  private final EmbeddingModel model;
  private final CallOptions options;

  /**
   * Puts a model under a virtual GPU.
   *
   * @param gpu the virtual GPU of the requests; not closed by this
   * @param model must work in the calling thread; its own executor would work outside the call
   * @param options how long a request waits, and its peak memory
   */
  public SharedEmbeddingModel(VirtualGpu gpu, EmbeddingModel model, CallOptions options) {
    this.gpu = gpu;
    this.model = model;
    this.options = options;
  }

  // #region langchain4j
  @Override
  public Response<List<Embedding>> embedAll(List<TextSegment> segments) {
    try {
      return gpu.call(() -> model.embedAll(segments), options);
    } catch (RuntimeException e) {
      throw e;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting: virtualGpu=" + gpu.id(), e);
    } catch (Exception e) {
      throw new IllegalStateException(e); // embedAll declares none
    }
  }

  // #endregion langchain4j

  @Override
  public int dimension() {
    return model.dimension();
  }
}
