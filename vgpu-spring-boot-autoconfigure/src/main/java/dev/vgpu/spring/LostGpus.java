package dev.vgpu.spring;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.PhysicalGpu;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The GPUs that are lost now, with the reasons. Safe for use by several threads. */
final class LostGpus {
  private volatile Map<GpuId, String> reasons = Map.of();

  /** {@return whether this changes which GPUs are lost} */
  synchronized boolean changed(GpuId gpu, GpuHealth health, String reason) {
    Map<GpuId, String> now = new HashMap<>(reasons);
    boolean isChanged =
        health == GpuHealth.LOST ? now.put(gpu, reason) == null : now.remove(gpu) != null;
    reasons = Map.copyOf(now);
    return isChanged;
  }

  boolean isEmpty() {
    return reasons.isEmpty();
  }

  /** {@return why work under a virtual GPU fails now; null if its GPUs are there} */
  @Nullable GpuDriverException failure(VirtualGpu gpu) {
    Map<GpuId, String> lost = reasons;
    if (lost.isEmpty()) {
      return null;
    }
    for (PhysicalGpu physical : gpu.gpus()) {
      String reason = lost.get(physical.id());
      if (reason != null) {
        return new GpuDriverException(
            "the GPU is lost: "
                + reason
                + " gpu="
                + physical.id()
                + " name="
                + gpu.request().name()
                + " virtualGpu="
                + gpu.id(),
            null);
      }
    }
    return null;
  }
}
