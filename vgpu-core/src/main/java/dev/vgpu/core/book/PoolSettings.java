package dev.vgpu.core.book;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * The settings of a pool's GPUs. Immutable.
 *
 * @param forAll for GPUs without settings of their own
 * @param some the GPUs with settings of their own
 */
public record PoolSettings(GpuSettings forAll, Map<GpuId, GpuSettings> some) {
  /** Copies the map. */
  public PoolSettings {
    some = Map.copyOf(some);
  }

  /** {@return the settings that a pool's options ask for} */
  public static PoolSettings from(GpuPoolOptions options) {
    return new PoolSettings(options.gpuSettings(), options.settingsOfSome());
  }

  /** {@return the settings of one GPU} */
  public GpuSettings of(GpuId gpu) {
    return some.getOrDefault(gpu, forAll);
  }

  /** Throws if there are settings for a GPU that is not in the pool. */
  public void check(Collection<? extends PhysicalGpu> gpus) {
    if (some.isEmpty()) {
      return;
    }
    List<GpuId> there = gpus.stream().map(PhysicalGpu::id).toList();
    for (GpuId named : some.keySet()) {
      if (!there.contains(named)) {
        throw new IllegalArgumentException(
            "settings for a GPU that is not in this pool: gpu=" + named + " gpus=" + there);
      }
    }
  }
}
