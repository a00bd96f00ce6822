package dev.vgpu.samples.inference;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import org.jspecify.annotations.Nullable;

/** One model in {@code GET /models}; the last two fields are missing if it has no virtual GPU. */
@JsonInclude(JsonInclude.Include.NON_NULL)
record ModelStatus(String name, long texts, @Nullable Share share, @Nullable Used used) {

  /** The model's grant; {@code percent} 0 is best effort, which guarantees nothing. */
  record Share(
      @JsonProperty("class") String preemptionClass, String policy, int percent, long quotaBytes) {}

  /** The model's use so far. */
  record Used(
      long gpuTimeNs,
      long calls,
      long preemptions,
      int running,
      int waiting,
      long memoryReservedBytes) {}

  static ModelStatus of(ServedModel model) {
    return model
        .gpu()
        .map(gpu -> of(model, gpu.request(), gpu.usage()))
        .orElseGet(() -> new ModelStatus(model.name(), model.delivered(), null, null));
  }

  private static ModelStatus of(ServedModel model, VirtualGpuRequest request, GpuUsage usage) {
    return new ModelStatus(
        model.name(),
        model.delivered(),
        new Share(
            request.preemptionClass().name(),
            request.policy().name(),
            request.computePercent().orElse(0),
            request.memory().bytes()),
        new Used(
            usage.gpuTime().toNanos(),
            usage.calls(),
            usage.preemptions(),
            usage.running(),
            usage.waiting(),
            usage.memoryReserved().bytes()));
  }
}
