package dev.vgpu.samples.inference;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;

/**
 * The answer to {@code GET /demo/phase}. A span is {@code [tenant's index, startNs, endNs]}, since
 * the start of the phase. A cancelled attempt has a span too, because it used the device.
 */
record DemoPhaseReport(
    String name,
    DemoPhaseRequest.Sharing sharing,
    long elapsedNs,
    List<Tenant> tenants,
    List<long[]> spans) {

  /** The share that one model was granted, and its use. */
  record Tenant(
      String name,
      @JsonProperty("class") String preemptionClass,
      String policy,
      int percent,
      long items,
      long calls,
      long preemptions,
      long gpuTimeNs,
      long memoryPeakBytes,
      long quotaBytes) {

    /** With vgpu, the charged time; without, the observed time. */
    static Tenant of(DemoTenant tenant, ServedModel model, List<DemoSpans.Span> sorted) {
      VirtualGpuRequest request = tenant.request();
      VirtualGpu gpu = model.gpu().orElse(null);
      return new Tenant(
          request.name(),
          request.preemptionClass().name(),
          request.policy().name(),
          request.computePercent().orElse(0),
          model.delivered(),
          gpu == null ? tenant.attempts() : gpu.usage().calls(),
          gpu == null ? tenant.cancelled() : gpu.usage().preemptions(),
          gpu == null ? DemoSpans.unionNs(sorted, tenant.index()) : gpu.usage().gpuTime().toNanos(),
          tenant.memoryPeakBytes(),
          request.memory().bytes());
    }
  }
}
