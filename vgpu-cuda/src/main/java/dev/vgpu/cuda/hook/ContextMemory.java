package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.watch.PhysicalGpu;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory that a context on a GPU is charged, as far as it is known in advance. Safe for use by
 * several threads.
 */
public final class ContextMemory {
  private static final Logger log = LoggerFactory.getLogger(ContextMemory.class);

  private final Map<String, String> environment;
  private final Map<String, String> ofDrivers = new ConcurrentHashMap<>();

  /** Takes the value from the environment, else from the driver module. */
  public ContextMemory(Map<String, String> environment) {
    this.environment = Map.copyOf(environment);
  }

  /**
   * {@return why no program can start under a quota; empty if one can}
   *
   * @param gpu the GPU
   * @param quota the quota on it
   */
  public Optional<String> lack(PhysicalGpu gpu, MemorySize quota) {
    long bytes = of(gpu);
    return quota.bytes() >= bytes
        ? Optional.empty()
        : Optional.of(
            "the quota is smaller than a CUDA context, so no program could start: memory="
                + quota
                + " context="
                + MemorySize.ofBytes(bytes)
                + " gpu="
                + gpu.id());
  }

  /** {@return the bytes; 0 if unknown} */
  long of(PhysicalGpu gpu) {
    String text = environment.get(HookEnvironment.VGPU_CONTEXT_MEMORY);
    if (text == null) {
      text = ofDrivers.computeIfAbsent(gpu.provider(), ContextMemory::ofDriver);
    }
    if (text.isBlank()) {
      return 0;
    }
    try {
      return Math.max(0, Long.parseLong(text.strip()));
    } catch (NumberFormatException e) {
      log.warn(
          "{} is not a number of bytes, and is ignored: {}",
          HookEnvironment.VGPU_CONTEXT_MEMORY,
          text);
      return 0;
    }
  }

  private static String ofDriver(String provider) {
    ClassLoader own = ContextMemory.class.getClassLoader();
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class, own)) {
      if (driver.name().equals(provider)) {
        return driver.environment().getOrDefault(HookEnvironment.VGPU_CONTEXT_MEMORY, "");
      }
    }
    return "";
  }
}
