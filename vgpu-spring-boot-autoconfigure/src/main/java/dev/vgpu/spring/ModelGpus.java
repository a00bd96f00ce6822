package dev.vgpu.spring;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Turns a model's properties into its virtual GPU. */
final class ModelGpus {
  private ModelGpus() {}

  /** Builds the request; an invalid value is reported with its property's name. */
  static VirtualGpuRequest request(String name, VgpuProperties.Model model) {
    String memory = model.memory();
    if (memory == null) {
      throw VgpuStartException.ofModel(
          name,
          "it has no memory quota",
          "Set " + property(name, "memory") + ", for example to 2GiB.");
    }
    VirtualGpuRequest.Builder builder = VirtualGpuRequest.builder();
    given(name, "", () -> builder.name(name));
    given(name, "memory", () -> builder.memory(MemorySize.fromString(memory)));
    given(name, "gpu-count", () -> builder.gpuCount(model.gpuCount()));
    builder.preemptionClass(model.preemptionClass()).policy(policy(model));
    Integer share = model.share();
    if (share != null) {
      given(name, "share", () -> builder.computePercent(share));
    }
    Integer calls = model.maxConcurrentCalls();
    if (calls != null) {
      given(name, "max-concurrent-calls", () -> builder.maxConcurrentCalls(calls));
    }
    String gpu = model.gpu();
    if (gpu != null) {
      given(name, "gpu", () -> builder.gpu(new GpuId(gpu)));
    }
    return given(name, "policy", builder::build);
  }

  private static SharePolicy policy(VgpuProperties.Model model) {
    SharePolicy policy = model.policy();
    if (policy != null) {
      return policy;
    }
    return model.share() == null ? SharePolicy.BEST_EFFORT : SharePolicy.BURST_SHARE;
  }

  private static <T> T given(String name, String key, Supplier<T> setter) {
    try {
      return setter.get();
    } catch (IllegalArgumentException e) {
      throw VgpuStartException.ofModel(name, e, "Change " + property(name, key) + ".");
    }
  }

  /** The virtual GPU of a model; waits for it as long as the properties say. */
  static VirtualGpu acquire(GpuPool pool, String name, VgpuProperties.Model model) {
    VirtualGpuRequest request = request(name, model);
    String smaller =
        "Lower "
            + property(name, "memory")
            + " or "
            + property(name, "share")
            + ", take something from the others that the message names, or set "
            + property(name, "acquire-timeout")
            + " to wait for them.";
    try {
      VirtualGpu gpu = tryAcquire(pool, request, model);
      return gpu == null ? pool.acquire(request) : gpu; // the refusal names the holders
    } catch (GpuCapacityException e) {
      throw VgpuStartException.ofModel(name, e, smaller);
    } catch (IllegalArgumentException | VgpuException e) {
      throw VgpuStartException.ofModel(
          name, e, "Change the properties of " + property(name, "") + ".");
    }
  }

  private static @Nullable VirtualGpu tryAcquire(
      GpuPool pool, VirtualGpuRequest request, VgpuProperties.Model model) {
    if (model.acquireTimeout().isZero()) {
      return null;
    }
    try {
      return pool.tryAcquire(request, model.acquireTimeout()).orElse(null);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for a virtual GPU", e);
    }
  }

  private static String property(String name, String key) {
    return "vgpu.models." + name + (key.isEmpty() ? "" : "." + key);
  }
}
