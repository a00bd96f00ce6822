package dev.vgpu;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The options of a pool. Immutable. */
public final class GpuPoolOptions {
  private static final GpuPoolOptions DEFAULTS = builder().build();

  private final @Nullable List<PhysicalGpu> gpus;
  private final GpuSettings gpuSettings;
  private final Map<GpuId, GpuSettings> settingsOfSome;
  private final LeakTracking leakTracking;
  private final Scope scope;
  private final @Nullable Path runDirectory;

  private GpuPoolOptions(Builder builder) {
    this.gpus = builder.gpus;
    this.gpuSettings = builder.gpuSettings;
    this.settingsOfSome = Map.copyOf(builder.settingsOfSome);
    this.leakTracking = builder.leakTracking;
    this.scope = builder.scope;
    this.runDirectory = builder.runDirectory;
  }

  /** The processes that share the pool's GPUs. */
  public enum Scope {
    /**
     * Every process of this node that opens a pool on the same run directory. One of these
     * processes schedules for all. If no run directory can be used, the pool serves this JVM alone,
     * and says so in the log and in {@link GpuPool#backends()}.
     */
    NODE,
    /** This JVM alone: no run directory, no socket, no other processes. */
    THIS_JVM
  }

  /** Whether to record where a virtual GPU was acquired, so that a leak can be traced. */
  public enum LeakTracking {
    /** No record: a leaked virtual GPU is closed and logged with its name only. */
    OFF,
    /** The stack trace of the acquisition. Costs some microseconds per acquisition. */
    CREATION_SITE
  }

  /** {@return the options of {@link GpuPool#open()}} */
  public static GpuPoolOptions defaults() {
    return DEFAULTS;
  }

  /** {@return a builder that holds the defaults} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return the GPUs to manage; empty means those that the installed providers find} */
  public Optional<List<PhysicalGpu>> gpus() {
    return Optional.ofNullable(gpus);
  }

  /** {@return the settings of every GPU without an entry in {@link #settingsOfSome()}} */
  public GpuSettings gpuSettings() {
    return gpuSettings;
  }

  /** {@return the GPUs with settings of their own, with these settings} */
  public Map<GpuId, GpuSettings> settingsOfSome() {
    return settingsOfSome;
  }

  /** {@return how leaks are recorded} */
  public LeakTracking leakTracking() {
    return leakTracking;
  }

  /** {@return the processes that share the pool's GPUs} */
  public Scope scope() {
    return scope;
  }

  /**
   * {@return the run directory; empty means {@code $VGPU_RUN_DIR}, else {@code
   * $XDG_RUNTIME_DIR/vgpu}, else {@code /run/vgpu}}
   */
  public Optional<Path> runDirectory() {
    return Optional.ofNullable(runDirectory);
  }

  /** Builds options. Not safe for use by several threads. */
  public static final class Builder {
    private @Nullable List<PhysicalGpu> gpus;
    private GpuSettings gpuSettings = GpuSettings.defaults();
    private final Map<GpuId, GpuSettings> settingsOfSome = new HashMap<>();
    private LeakTracking leakTracking = LeakTracking.OFF;
    private Scope scope = Scope.NODE;
    private @Nullable Path runDirectory;

    private Builder() {}

    /**
     * Sets the GPUs to manage, instead of asking the installed providers.
     *
     * @param gpus at least one; the names must differ
     * @return this builder
     * @throws IllegalArgumentException if empty, or if two GPUs have the same name
     */
    public Builder gpus(List<? extends PhysicalGpu> gpus) {
      List<PhysicalGpu> copy = List.copyOf(requireNonNull(gpus, "gpus"));
      if (copy.isEmpty()) {
        throw new IllegalArgumentException("no GPU to manage: gpus=[]");
      }
      if (copy.stream().map(PhysicalGpu::id).distinct().count() < copy.size()) {
        throw new IllegalArgumentException(
            "two GPUs have the same name: gpus=" + copy.stream().map(PhysicalGpu::id).toList());
      }
      this.gpus = copy;
      return this;
    }

    /**
     * Sets the settings of every GPU that has none of its own.
     *
     * @param gpuSettings default {@link GpuSettings#defaults()}
     * @return this builder
     */
    public Builder gpuSettings(GpuSettings gpuSettings) {
      this.gpuSettings = requireNonNull(gpuSettings, "gpuSettings");
      return this;
    }

    /**
     * Sets the settings of one GPU. Opening a pool without that GPU fails.
     *
     * @param gpu the GPU
     * @param gpuSettings its settings, in place of those for all GPUs
     * @return this builder
     */
    public Builder gpuSettings(GpuId gpu, GpuSettings gpuSettings) {
      settingsOfSome.put(requireNonNull(gpu, "gpu"), requireNonNull(gpuSettings, "gpuSettings"));
      return this;
    }

    /**
     * Sets how leaks are recorded.
     *
     * @param leakTracking default {@link LeakTracking#OFF}
     * @return this builder
     */
    public Builder leakTracking(LeakTracking leakTracking) {
      this.leakTracking = requireNonNull(leakTracking, "leakTracking");
      return this;
    }

    /**
     * Sets the processes that share the pool's GPUs.
     *
     * @param scope default {@link Scope#NODE}
     * @return this builder
     */
    public Builder scope(Scope scope) {
      this.scope = requireNonNull(scope, "scope");
      return this;
    }

    /**
     * Sets the directory through which the processes of a node find each other. If it is missing,
     * it is created with access for its owner only.
     *
     * @param runDirectory on a local file system that supports file locks; its path must be short
     *     enough for a socket address (97 bytes). Default: see {@link
     *     GpuPoolOptions#runDirectory()}
     * @return this builder
     */
    public Builder runDirectory(Path runDirectory) {
      this.runDirectory = requireNonNull(runDirectory, "runDirectory");
      return this;
    }

    /** {@return the options} */
    public GpuPoolOptions build() {
      return new GpuPoolOptions(this);
    }
  }
}
