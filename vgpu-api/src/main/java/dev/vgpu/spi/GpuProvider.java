package dev.vgpu.spi;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

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

  /**
   * {@return the variables that a process needs in order to see this GPU and no other}
   *
   * @param gpu one of {@link #gpus()}
   */
  default Map<String, String> environment(GpuId gpu) {
    return Map.of();
  }

  /**
   * {@return the variables that a process needs in order to see these GPUs and no other}
   *
   * @param gpus some of {@link #gpus()}, at least one
   * @throws VgpuException if this provider can show a process one GPU at most
   */
  default Map<String, String> environment(List<GpuId> gpus) {
    Map<String, String> first = environment(gpus.get(0));
    for (GpuId gpu : gpus) {
      if (!environment(gpu).equals(first)) {
        throw new VgpuException("a program can be shown one GPU at most: gpus=" + gpus);
      }
    }
    return first;
  }

  /**
   * {@return the memory of a GPU that is free now, as its driver says; empty if it does not} Called
   * some times a second.
   *
   * @param gpu one of {@link #gpus()}
   * @throws GpuDriverException if the driver is there and fails
   */
  default Optional<MemorySize> freeMemory(GpuId gpu) {
    return Optional.empty();
  }

  /**
   * {@return the driver's readings of its GPUs now; one that was found before and does not answer
   * is lost. Empty if it tells nothing} May be called once a second and more; must not throw.
   */
  default List<GpuReading> readings() {
    return List.of();
  }

  /**
   * Begins to watch its GPUs, on a thread of its own. Returns at once.
   *
   * @param listener receives the changes
   * @return ends it
   */
  default GpuPool.Listening watch(GpuHealthListener listener) {
    return () -> {};
  }
}
