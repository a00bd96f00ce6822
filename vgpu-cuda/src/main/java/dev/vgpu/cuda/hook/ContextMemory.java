package dev.vgpu.cuda.hook;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.spi.GpuDriver;
import java.util.Map;
import java.util.ServiceLoader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The memory that a context on a GPU is charged, as far as it is known in advance. Immutable. */
public final class ContextMemory {
  private static final Logger log = LoggerFactory.getLogger(ContextMemory.class);

  private final Map<String, String> environment;

  /** Takes the value from the environment, else from the driver module. */
  public ContextMemory(Map<String, String> environment) {
    this.environment = Map.copyOf(environment);
  }

  /** {@return the bytes; 0 if unknown} */
  long of(PhysicalGpu gpu) {
    String text = environment.get(HookEnvironment.VGPU_CONTEXT_MEMORY);
    if (text == null) {
      text = ofDriver(gpu.provider());
    }
    if (text == null || text.isBlank()) {
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

  private static @org.jspecify.annotations.Nullable String ofDriver(String provider) {
    ClassLoader own = ContextMemory.class.getClassLoader();
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class, own)) {
      if (driver.name().equals(provider)) {
        return driver.environment().get(HookEnvironment.VGPU_CONTEXT_MEMORY);
      }
    }
    return null;
  }
}
