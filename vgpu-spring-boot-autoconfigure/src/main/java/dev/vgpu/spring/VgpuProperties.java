package dev.vgpu.spring;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.bind.Name;

/**
 * The properties below {@code vgpu}. With an unknown one, the service does not start.
 *
 * @param enabled whether to open the pool and acquire virtual GPUs for the models
 * @param models the models of this service by name: 1 to 63 letters, digits, dots, dashes and
 *     underscores. Each gets a virtual GPU, a bean with the model's name as its qualifier. A name
 *     with a dot needs brackets: [llama-3.1], in YAML with quotes around them
 * @param pool how the GPUs of this node are shared
 * @param dashboard the page that shows which models use the GPUs, and why they wait
 */
@ConfigurationProperties(prefix = "vgpu", ignoreUnknownFields = false)
public record VgpuProperties(
    @DefaultValue("true") boolean enabled,
    @DefaultValue Map<String, Model> models,
    @DefaultValue Pool pool,
    @DefaultValue Dashboard dashboard) {

  /** Copies the map. */
  public VgpuProperties {
    models = Map.copyOf(models);
  }

  /**
   * The virtual GPU of one model.
   *
   * @param share the share of the GPU's time in percent, 1 to 100. If set, the default policy is
   *     burst-share; otherwise it is best-effort
   * @param memory the quota of GPU memory, for example 4GiB or 512MiB; always needed
   * @param policy how the share is enforced
   * @param preemptionClass which tenants yield to which
   * @param maxConcurrentCalls how many calls may run at once; further calls wait
   * @param gpu the UUID of the GPU to use; any GPU if not set
   * @param gpuCount how many GPUs it spans
   * @param acquireTimeout how long startup waits until the model fits; 0 fails at once
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
   * The settings of the pool. Unset properties have the library's defaults.
   *
   * @param scope whether all processes of this node share the GPUs, or only this JVM uses them
   * @param runDirectory where the processes of the node meet
   * @param leakTracking whether the place where a virtual GPU was acquired is recorded
   * @param sharing whether tenants may run at the same time where their policies allow it
   * @param shortestTurn the shortest turn
   * @param longestTurn the longest turn
   * @param offlineFloorPercent the least part of the time that offline models get, 0 to 100 percent
   * @param memoryOversubscriptionPercent the part of the usable memory that all quotas together may
   *     take, 100 to 1000 percent
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

  /**
   * The dashboard's settings.
   *
   * @param enabled whether to serve it
   * @param address the name or IP address to listen on. Everywhere but on the loopback interface,
   *     viewers need a token
   * @param port the port to listen on, 0 to 65535; with 0, any free port
   * @param token the secret that viewers must give, at least 16 characters; needed unless the
   *     address is on the loopback interface
   */
  public record Dashboard(
      @DefaultValue("false") boolean enabled,
      @DefaultValue("127.0.0.1") String address,
      @DefaultValue("8470") int port,
      @Nullable String token) {
    /** {@return the settings without the secret} */
    @Override
    public String toString() {
      return "Dashboard[enabled=" + enabled + ", address=" + address + ", port=" + port + "]";
    }
  }
}
