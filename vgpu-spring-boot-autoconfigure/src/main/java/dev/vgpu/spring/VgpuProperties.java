package dev.vgpu.spring;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.bind.Name;

/**
 * The properties below {@code vgpu}. An unknown one fails the start.
 *
 * @param enabled whether the pool is opened and virtual GPUs are cut for the models
 * @param models the models of this service by name: 1 to 63 letters, digits, dots, dashes and
 *     underscores. Each gets a virtual GPU, a bean with the model's name as its qualifier
 * @param pool how the GPUs of this node are shared
 */
@ConfigurationProperties(prefix = "vgpu", ignoreUnknownFields = false)
public record VgpuProperties(
    @DefaultValue("true") boolean enabled,
    @DefaultValue Map<String, Model> models,
    @DefaultValue Pool pool) {

  /** Copies the map. */
  public VgpuProperties {
    models = Map.copyOf(models);
  }

  /**
   * What one model gets.
   *
   * @param share the share of the GPU's time in percent, 1 to 100; with a share the policy is
   *     burst-share unless set, without one best-effort
   * @param memory the quota of GPU memory, for example 4GiB or 512MiB; always needed
   * @param policy how the share binds
   * @param preemptionClass who yields to whom
   * @param maxConcurrentCalls how many calls may run together; more wait
   * @param gpu the UUID of the GPU that it must be on; any if not set
   * @param gpuCount how many GPUs it is cut from
   * @param acquireTimeout how long the start waits until the model fits; 0 fails at once
   */
  public record Model(
      @Nullable Integer share,
      @Nullable String memory,
      @Nullable SharePolicy policy,
      @Name("class") @DefaultValue("nearline") PreemptionClass preemptionClass,
      @Nullable Integer maxConcurrentCalls,
      @Nullable String gpu,
      @DefaultValue("1") int gpuCount,
      @DefaultValue("0s") Duration acquireTimeout) {}

  /**
   * How the pool works. What is not set is as the library has it.
   *
   * @param scope who shares the GPUs: every process of this node, or this JVM alone
   * @param runDirectory where the processes of the node meet
   * @param leakTracking what is remembered of where a virtual GPU was acquired
   * @param sharing whether tenants may work together where their policies allow it
   * @param shortestTurn the shortest turn
   * @param longestTurn the longest turn
   * @param offlineFloorPercent the part of the time, 0 to 100 percent, that offline models get at
   *     least
   * @param memoryOversubscriptionPercent the part of the usable memory that quotas may take
   *     together, 100 to 1000 percent
   */
  public record Pool(
      GpuPoolOptions.@Nullable Scope scope,
      @Nullable Path runDirectory,
      GpuPoolOptions.@Nullable LeakTracking leakTracking,
      GpuSettings.@Nullable Sharing sharing,
      @Nullable Duration shortestTurn,
      @Nullable Duration longestTurn,
      @Nullable Integer offlineFloorPercent,
      @Nullable Integer memoryOversubscriptionPercent) {}
}
