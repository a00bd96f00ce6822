package dev.vgpu.spi;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuDriverException;
import dev.vgpu.PhysicalGpu;
import java.util.List;

/** Finds GPUs. A module that knows a driver implements it; {@code ServiceLoader} finds it. */
public interface GpuProvider {
  /**
   * {@return whether its driver is there, or why not} Called at any time, also for {@code doctor};
   * must not throw and must leave nothing behind.
   */
  BackendStatus status();

  /**
   * {@return the GPUs that it finds now; empty if there are none, or no driver}
   *
   * @throws GpuDriverException if the driver is there and fails
   */
  List<PhysicalGpu> gpus();
}
