package dev.vgpu.micrometer;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import io.micrometer.core.instrument.Tags;
import java.util.Locale;

/**
 * The tags of a virtual GPU's meters. They never include a lease's id: the number of series would
 * be unbounded.
 */
record Tenant(String name, String gpu, String preemptionClass, String policy) {
  static Tenant of(VirtualGpuRequest request, GpuId gpu) {
    return new Tenant(
        request.name(),
        gpu.value(),
        request.preemptionClass().name().toLowerCase(Locale.ROOT),
        request.policy().name().toLowerCase(Locale.ROOT));
  }

  Tags tags() {
    return Tags.of("name", name, "gpu", gpu, "class", preemptionClass, "policy", policy);
  }
}
