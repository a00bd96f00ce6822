package dev.vgpu.spring;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** From properties to the options of a pool. */
final class PoolOptions {
  private PoolOptions() {}

  static GpuPoolOptions of(VgpuProperties.Pool pool) {
    GpuSettings.Builder settings = GpuSettings.builder();
    given("sharing", pool.sharing(), settings::sharing);
    given("shortest-turn", pool.shortestTurn(), settings::shortestTurn);
    given("longest-turn", pool.longestTurn(), settings::longestTurn);
    given("offline-floor-percent", pool.offlineFloorPercent(), settings::offlineFloorPercent);
    given(
        "memory-oversubscription-percent",
        pool.memoryOversubscriptionPercent(),
        settings::memoryOversubscriptionPercent);
    GpuPoolOptions.Builder options = GpuPoolOptions.builder();
    given("shortest-turn", settings, made -> options.gpuSettings(made.build()));
    given("scope", pool.scope(), options::scope);
    given("run-directory", pool.runDirectory(), options::runDirectory);
    given("leak-tracking", pool.leakTracking(), options::leakTracking);
    return options.build();
  }

  private static <T> void given(String property, @Nullable T value, Consumer<T> setter) {
    if (value != null) {
      try {
        setter.accept(value);
      } catch (IllegalArgumentException e) {
        throw VgpuStartException.ofPool("vgpu.pool." + property, e);
      }
    }
  }
}
