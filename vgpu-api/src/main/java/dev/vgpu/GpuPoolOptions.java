package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How a pool works. Immutable. */
public final class GpuPoolOptions {
  private static final GpuPoolOptions DEFAULTS = builder().build();
  private static final Duration LONGEST = Duration.ofSeconds(10);

  private final @Nullable List<PhysicalGpu> gpus;
  private final int offlineFloorPercent;
  private final Duration turnLength;
  private final Duration idleLinger;
  private final LeakTracking leakTracking;
  private final Scope scope;
  private final @Nullable Path runDirectory;

  private GpuPoolOptions(Builder builder) {
    this.gpus = builder.gpus;
    this.offlineFloorPercent = builder.offlineFloorPercent;
    this.turnLength = builder.turnLength;
    this.idleLinger = builder.idleLinger;
    this.leakTracking = builder.leakTracking;
    this.scope = builder.scope;
    this.runDirectory = builder.runDirectory;
  }

  /** Who shares a pool's GPUs with it. */
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

  /** What is remembered of where a virtual GPU was acquired, to name it when it leaks. */
  public enum LeakTracking {
    /** Nothing: a leak is closed and logged by its name only. */
    OFF,
    /** The stack trace of the acquisition. Costs some microseconds for each. */
    CREATION_SITE
  }

  /** {@return what {@link GpuPool#open()} uses} */
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

  /** {@return the least part of each GPU that offline tenants with work get, 0 to 100 percent} */
  public int offlineFloorPercent() {
    return offlineFloorPercent;
  }

  /** {@return how long a tenant keeps the GPU while others wait} */
  public Duration turnLength() {
    return turnLength;
  }

  /** {@return how long an idle tenant that is next in line keeps its turn while others wait} */
  public Duration idleLinger() {
    return idleLinger;
  }

  /** {@return what is remembered to name a leak} */
  public LeakTracking leakTracking() {
    return leakTracking;
  }

  /** {@return who shares the pool's GPUs} */
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
    private int offlineFloorPercent;
    private Duration turnLength = Duration.ofMillis(2);
    private Duration idleLinger = Duration.ofNanos(100_000);
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
     * Sets the least part of each GPU that offline tenants with work get while more urgent ones
     * have work too.
     *
     * @param offlineFloorPercent 0 to 100; default 0
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder offlineFloorPercent(int offlineFloorPercent) {
      if (offlineFloorPercent < 0 || offlineFloorPercent > 100) {
        throw new IllegalArgumentException(
            "an offline floor is not within 0 to 100: offlineFloorPercent=" + offlineFloorPercent);
      }
      this.offlineFloorPercent = offlineFloorPercent;
      return this;
    }

    /**
     * Sets how long a tenant keeps the GPU while others of its class wait. Longer turns cost less
     * switching, shorter ones less waiting. A call that runs when the turn ends is not interrupted;
     * its overrun is paid back.
     *
     * @param turnLength above 0, at most 10 s; default 2 ms, which is 100 times the cost of a
     *     switch
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder turnLength(Duration turnLength) {
      if (requireNonNull(turnLength, "turnLength").isZero()) {
        throw new IllegalArgumentException("a turn's length is 0");
      }
      this.turnLength = checked("turnLength", turnLength);
      return this;
    }

    /**
     * Sets how long a tenant that is behind its share keeps its turn between two calls while others
     * wait, so that a thread that makes one call after the other can use its share. 0 passes an
     * idle turn on at once.
     *
     * @param idleLinger 0 or more, at most 10 s; default 100 µs
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder idleLinger(Duration idleLinger) {
      this.idleLinger = checked("idleLinger", idleLinger);
      return this;
    }

    /**
     * Sets what is remembered to name a leak.
     *
     * @param leakTracking default {@link LeakTracking#OFF}
     * @return this builder
     */
    public Builder leakTracking(LeakTracking leakTracking) {
      this.leakTracking = requireNonNull(leakTracking, "leakTracking");
      return this;
    }

    /**
     * Sets who shares the pool's GPUs.
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
     *     address (80 bytes); default see {@link GpuPoolOptions#runDirectory()}
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

    private static Duration checked(String name, Duration value) {
      if (requireNonNull(value, name).isNegative() || value.compareTo(LONGEST) > 0) {
        throw new IllegalArgumentException(
            "a duration is not within 0 to " + LONGEST + ": " + name + "=" + value);
      }
      return value;
    }
  }
}
