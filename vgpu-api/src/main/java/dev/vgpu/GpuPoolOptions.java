package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How a pool works. Immutable. */
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

  /** The processes that share a pool's GPUs with it. */
  public enum Scope {
    /**
     * Every process of this node that opens a pool on the same run directory: one of them schedules
     * for all. Where no run directory can be used, the pool serves this JVM alone, and says so in
     * the log and in {@link GpuPool#backends()}.
     */
    NODE,
    /** This JVM alone: no run directory, no socket, no programs beside it. */
    THIS_JVM
  }

  /** The record of where a virtual GPU was acquired, to name it when it leaks. */
  public enum LeakTracking {
    /** Nothing: a leak is closed and logged by its name only. */
    OFF,
    /** The stack trace of the acquisition. Costs some microseconds for each. */
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

  /** {@return the GPUs to manage; empty: those that the installed providers find} */
  public Optional<List<PhysicalGpu>> gpus() {
    return Optional.ofNullable(gpus);
  }

  /** {@return how GPUs are shared for which nothing else is set} */
  public GpuSettings gpuSettings() {
    return gpuSettings;
  }

  /** {@return how those GPUs are shared for which something else is set} */
  public Map<GpuId, GpuSettings> settingsOfSome() {
    return settingsOfSome;
  }

  /** {@return the record that names a leak} */
  public LeakTracking leakTracking() {
    return leakTracking;
  }

  /** {@return the processes that share the pool's GPUs} */
  public Scope scope() {
    return scope;
  }

  /**
   * {@return the run directory; empty: {@code $VGPU_RUN_DIR}, else {@code $XDG_RUNTIME_DIR/vgpu},
   * else {@code /run/vgpu}}
   */
  public Optional<Path> runDirectory() {
    return Optional.ofNullable(runDirectory);
  }

  /** Collects options. Not safe for use by several threads. */
  public static final class Builder {
    private @Nullable List<PhysicalGpu> gpus;
    private GpuSettings gpuSettings = GpuSettings.defaults();
    private final Map<GpuId, GpuSettings> settingsOfSome = new HashMap<>();
    private LeakTracking leakTracking = LeakTracking.OFF;
    private Scope scope = Scope.NODE;
    private @Nullable Path runDirectory;

    private Builder() {}

    /**
     * Gives the GPUs to manage, instead of asking the installed providers.
     *
     * @param gpus at least one, each with another name
     * @return this builder
     * @throws IllegalArgumentException if empty, or if two have one name
     */
    public Builder gpus(List<? extends PhysicalGpu> gpus) {
      List<PhysicalGpu> copy = List.copyOf(requireNonNull(gpus, "gpus"));
      if (copy.isEmpty()) {
        throw new IllegalArgumentException("no GPU to manage: gpus=[]");
      }
      if (copy.stream().map(PhysicalGpu::id).distinct().count() < copy.size()) {
        throw new IllegalArgumentException(
            "two GPUs have one name: gpus=" + copy.stream().map(PhysicalGpu::id).toList());
      }
      this.gpus = copy;
      return this;
    }

    /**
     * Sets how each GPU is shared for which nothing else is set.
     *
     * @param gpuSettings default {@link GpuSettings#defaults()}
     * @return this builder
     */
    public Builder gpuSettings(GpuSettings gpuSettings) {
      this.gpuSettings = requireNonNull(gpuSettings, "gpuSettings");
      return this;
    }

    /**
     * Sets how one GPU is shared. A pool that has no such GPU is refused when it is opened.
     *
     * @param gpu which one
     * @param gpuSettings instead of those for all
     * @return this builder
     */
    public Builder gpuSettings(GpuId gpu, GpuSettings gpuSettings) {
      settingsOfSome.put(requireNonNull(gpu, "gpu"), requireNonNull(gpuSettings, "gpuSettings"));
      return this;
    }

    /**
     * Sets the record that names a leak.
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
     * Sets where the processes of a node meet. It is made, for its owner only, where it is missing.
     *
     * @param runDirectory on a local file system that can lock files, short enough for a socket's
     *     address (97 bytes); default see {@link GpuPoolOptions#runDirectory()}
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
