package dev.vgpu.spi;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Finds GPUs through a driver. Implementations are found by {@code ServiceLoader}. */
public interface GpuProvider {
  /**
   * {@return whether its driver is available, or why not} Called at any time, also by {@code vgpu
   * doctor}. Must not throw, and must leave nothing behind.
   */
  BackendStatus status();

  /**
   * {@return the GPUs that it finds now; empty if there are none, or no driver}
   *
   * @throws GpuDriverException if the driver is present and fails
   */
  List<PhysicalGpu> gpus();

  /**
   * {@return the variables that a process needs to see this GPU and no other}
   *
   * @param gpu one of {@link #gpus()}
   */
  default Map<String, String> environment(GpuId gpu) {
    return Map.of();
  }

  /**
   * {@return the variables that a process needs to see these GPUs and no others}
   *
   * @param gpus some of {@link #gpus()}, at least one
   * @throws VgpuException if this provider can show a process only one GPU
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
   * {@return what a GPU's id is unique in; empty: this machine} One seat manages a GPU in its
   * scope.
   *
   * @param gpu one of {@link #gpus()}
   */
  default String scope(GpuId gpu) {
    return "";
  }

  /**
   * {@return the free memory of a GPU as its driver reports it; empty if the driver does not}
   * Called several times a second.
   *
   * @param gpu one of {@link #gpus()}
   * @throws GpuDriverException if the driver is present and fails
   */
  default Optional<MemorySize> freeMemory(GpuId gpu) {
    return Optional.empty();
  }

  /**
   * {@return the driver's current readings of its GPUs; empty if it provides none} A GPU that was
   * found before and does not answer has a reading that says it is lost. May be called once a
   * second or more often; must not throw.
   */
  default List<GpuReading> readings() {
    return List.of();
  }

  /**
   * Starts watching its GPUs on a thread of its own. Returns at once.
   *
   * @param listener receives the changes
   * @return the registration; close it to stop
   */
  default GpuPool.Listening watch(GpuHealthListener listener) {
    return () -> {};
  }
}
