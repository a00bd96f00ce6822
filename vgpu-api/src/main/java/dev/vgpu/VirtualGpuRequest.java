package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A request to a pool: how much of a GPU, and on what terms. Immutable. */
public final class VirtualGpuRequest {
  /** The largest value of {@link Builder#maxConcurrentCalls}. */
  public static final int MAX_CONCURRENT_CALLS = 60_000;

  /** The largest value of {@link Builder#gpuCount}. */
  public static final int MAX_GPU_COUNT = 16;

  private static final Capabilities NOTHING = Capabilities.builder().build();
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}");

  private final String name;
  private final @Nullable Integer computePercent;
  private final MemorySize memory;
  private final SharePolicy policy;
  private final PreemptionClass preemptionClass;
  private final int maxConcurrentCalls;
  private final @Nullable GpuId gpu;
  private final int gpuCount;
  private final Capabilities requires;
  private final FailureMode failureMode;
  private final MemoryMobility memoryMobility;

  private VirtualGpuRequest(Builder builder, MemorySize memory) {
    this.name = builder.name;
    this.computePercent = builder.computePercent;
    this.memory = memory;
    this.policy = builder.policy;
    this.preemptionClass = builder.preemptionClass;
    this.maxConcurrentCalls = builder.maxConcurrentCalls;
    this.gpu = builder.gpu;
    this.gpuCount = builder.gpuCount;
    this.requires = builder.requires;
    this.failureMode = builder.failureMode;
    this.memoryMobility = builder.memoryMobility;
  }

  /** {@return an empty builder} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return a builder with the values of this request, to make a similar one} */
  public Builder toBuilder() {
    Builder builder = new Builder();
    builder.name = name;
    builder.computePercent = computePercent;
    builder.memory = memory;
    builder.policy = policy;
    builder.preemptionClass = preemptionClass;
    builder.maxConcurrentCalls = maxConcurrentCalls;
    builder.gpu = gpu;
    builder.gpuCount = gpuCount;
    builder.requires = requires;
    builder.failureMode = failureMode;
    builder.memoryMobility = memoryMobility;
    return builder;
  }

  /** {@return the name by which people know the tenant; need not be unique} */
  public String name() {
    return name;
  }

  /** {@return the share, 1 to 100 percent of each GPU's time; empty for best effort} */
  public OptionalInt computePercent() {
    return computePercent == null ? OptionalInt.empty() : OptionalInt.of(computePercent);
  }

  /** {@return the quota on each GPU; above 0} */
  public MemorySize memory() {
    return memory;
  }

  /** {@return how the share binds} */
  public SharePolicy policy() {
    return policy;
  }

  /** {@return the preemption class} */
  public PreemptionClass preemptionClass() {
    return preemptionClass;
  }

  /** {@return how many calls may be inside the turn together} */
  public int maxConcurrentCalls() {
    return maxConcurrentCalls;
  }

  /** {@return the GPU that it must be cut from, or one of them; empty: any} */
  public Optional<GpuId> gpu() {
    return Optional.ofNullable(gpu);
  }

  /** {@return how many GPUs it is cut from, 1 to {@value #MAX_GPU_COUNT}} */
  public int gpuCount() {
    return gpuCount;
  }

  /** {@return the capabilities that the backend must have} */
  public Capabilities requires() {
    return requires;
  }

  /** {@return the effect when no backend has them} */
  public FailureMode failureMode() {
    return failureMode;
  }

  /** {@return whether its memory can leave the GPU while it is suspended} */
  public MemoryMobility memoryMobility() {
    return memoryMobility;
  }

  /** {@return the request as {@code name=value} pairs} */
  @Override
  public String toString() {
    return "name="
        + name
        + " policy="
        + policy
        + (computePercent == null ? "" : " computePercent=" + computePercent)
        + " memory="
        + memory
        + " class="
        + preemptionClass
        + (gpu == null ? "" : " gpu=" + gpu)
        + (gpuCount == 1 ? "" : " gpuCount=" + gpuCount)
        + (memoryMobility == MemoryMobility.FIXED ? "" : " memoryMobility=" + memoryMobility);
  }

  /** Builds a request. A setter checks its own value. Not safe for use by several threads. */
  public static final class Builder {
    private String name = "vgpu";
    private @Nullable Integer computePercent;
    private @Nullable MemorySize memory;
    private SharePolicy policy = SharePolicy.BEST_EFFORT;
    private PreemptionClass preemptionClass = PreemptionClass.NEARLINE;
    private int maxConcurrentCalls = MAX_CONCURRENT_CALLS;
    private @Nullable GpuId gpu;
    private int gpuCount = 1;
    private Capabilities requires = NOTHING;
    private FailureMode failureMode = FailureMode.REFUSE;
    private MemoryMobility memoryMobility = MemoryMobility.FIXED;

    private Builder() {}

    /**
     * Names the tenant, for people: in messages, events and tables.
     *
     * @param name 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or
     *     digit; default {@code vgpu}
     * @return this builder
     * @throws IllegalArgumentException if it is not of that form
     */
    public Builder name(String name) {
      if (!NAME.matcher(requireNonNull(name, "name")).matches()) {
        throw new IllegalArgumentException(
            "not a tenant's name: '"
                + name
                + "' (1 to 63 letters, digits, dots, dashes, underscores)");
      }
      this.name = name;
      return this;
    }

    /**
     * Sets the share. Needed by {@link SharePolicy#FIXED_SHARE} and {@link
     * SharePolicy#BURST_SHARE}, and refused with {@link SharePolicy#BEST_EFFORT}, which promises
     * none.
     *
     * @param computePercent 1 to 100 percent of one GPU's time; of each, if there are several
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder computePercent(int computePercent) {
      if (computePercent < 1 || computePercent > 100) {
        throw new IllegalArgumentException(
            "a compute share is not within 1 to 100: computePercent=" + computePercent);
      }
      this.computePercent = computePercent;
      return this;
    }

    /**
     * Sets the quota, on each GPU. Always needed.
     *
     * @param memory above 0
     * @return this builder
     * @throws IllegalArgumentException if 0
     */
    public Builder memory(MemorySize memory) {
      if (requireNonNull(memory, "memory").bytes() == 0) {
        throw new IllegalArgumentException("a memory quota is 0: memory=" + memory);
      }
      this.memory = memory;
      return this;
    }

    /**
     * Sets how the share binds.
     *
     * @param policy default {@link SharePolicy#BEST_EFFORT}
     * @return this builder
     */
    public Builder policy(SharePolicy policy) {
      this.policy = requireNonNull(policy, "policy");
      return this;
    }

    /**
     * Asks for best effort and drops the share, for a request that is made from another one.
     *
     * @return this builder
     */
    public Builder bestEffort() {
      this.policy = SharePolicy.BEST_EFFORT;
      this.computePercent = null;
      return this;
    }

    /**
     * Sets the preemption class.
     *
     * @param preemptionClass default {@link PreemptionClass#NEARLINE}
     * @return this builder
     */
    public Builder preemptionClass(PreemptionClass preemptionClass) {
      this.preemptionClass = requireNonNull(preemptionClass, "preemptionClass");
      return this;
    }

    /**
     * Bounds how many calls may be inside the tenant's turn together; more wait, in order of class,
     * then arrival. Set it to 1 where one call alone fills the device.
     *
     * @param maxConcurrentCalls 1 to {@value VirtualGpuRequest#MAX_CONCURRENT_CALLS}, which is the
     *     default
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder maxConcurrentCalls(int maxConcurrentCalls) {
      if (maxConcurrentCalls < 1 || maxConcurrentCalls > MAX_CONCURRENT_CALLS) {
        throw new IllegalArgumentException(
            "a bound on calls is not within 1 to "
                + MAX_CONCURRENT_CALLS
                + ": maxConcurrentCalls="
                + maxConcurrentCalls);
      }
      this.maxConcurrentCalls = maxConcurrentCalls;
      return this;
    }

    /**
     * Names the GPU that it must be cut from. Without, the pool chooses one on which it fits. With
     * {@link #gpuCount} above 1 it is one of them, and the pool chooses the others.
     *
     * @param gpu one of {@link GpuPool#gpus()}
     * @return this builder
     */
    public Builder gpu(GpuId gpu) {
      this.gpu = requireNonNull(gpu, "gpu");
      return this;
    }

    /**
     * Asks for several GPUs at once: all of them or none. The share and the quota are granted on
     * each, the turns are on all of them together, and the GPU time of a turn is charged to each.
     * The memory of its programs is counted for all GPUs together: up to the quota times the number
     * of GPUs.
     *
     * @param gpuCount 1, which is the default, to {@value VirtualGpuRequest#MAX_GPU_COUNT}
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder gpuCount(int gpuCount) {
      if (gpuCount < 1 || gpuCount > MAX_GPU_COUNT) {
        throw new IllegalArgumentException(
            "a number of GPUs is not within 1 to " + MAX_GPU_COUNT + ": gpuCount=" + gpuCount);
      }
      this.gpuCount = gpuCount;
      return this;
    }

    /**
     * Demands capabilities of the backend.
     *
     * @param requires at least this; default: nothing
     * @return this builder
     */
    public Builder requires(Capabilities requires) {
      this.requires = requireNonNull(requires, "requires");
      return this;
    }

    /**
     * Demands also how the memory quota binds.
     *
     * @param memory at least this
     * @return this builder
     */
    public Builder require(Capabilities.Memory memory) {
      return andRequire(Capabilities.builder().memory(memory));
    }

    /**
     * Demands also how the compute share binds.
     *
     * @param compute at least this
     * @return this builder
     */
    public Builder require(Capabilities.Compute compute) {
      return andRequire(Capabilities.builder().compute(compute));
    }

    /**
     * Demands also where it can be interrupted for others.
     *
     * @param preemption at least this
     * @return this builder
     */
    public Builder require(Capabilities.Preemption preemption) {
      return andRequire(Capabilities.builder().preemption(preemption));
    }

    /**
     * Demands also whether another tenant's crash may reach it.
     *
     * @param faultIsolation at least this
     * @return this builder
     */
    public Builder require(Capabilities.FaultIsolation faultIsolation) {
      return andRequire(Capabilities.builder().faultIsolation(faultIsolation));
    }

    /**
     * Demands also the kinds of code that can run under it.
     *
     * @param scopes all of these
     * @return this builder
     */
    public Builder require(Capabilities.Scope... scopes) {
      return andRequire(Capabilities.builder().worksFor(scopes));
    }

    private Builder andRequire(Capabilities.Builder more) {
      this.requires = requires.and(more.build());
      return this;
    }

    /**
     * Sets the effect when no backend has the demanded capabilities.
     *
     * @param failureMode default {@link FailureMode#REFUSE}
     * @return this builder
     */
    public Builder failureMode(FailureMode failureMode) {
      this.failureMode = requireNonNull(failureMode, "failureMode");
      return this;
    }

    /**
     * Sets whether its memory can leave the GPU, allocation by allocation, while it is suspended.
     * For {@link PreemptionClass#OFFLINE} on one GPU alone. Holds for later allocations.
     *
     * @param memoryMobility default {@link MemoryMobility#FIXED}
     * @return this builder
     */
    public Builder memoryMobility(MemoryMobility memoryMobility) {
      this.memoryMobility = requireNonNull(memoryMobility, "memoryMobility");
      return this;
    }

    /**
     * {@return the request}
     *
     * @throws IllegalArgumentException if the memory is not set, or if the share and the policy do
     *     not go together, or if memory shall be movable on several GPUs or not for offline
     */
    public VirtualGpuRequest build() {
      if (memory == null) {
        throw new IllegalArgumentException("the memory quota is not set: call memory(...)");
      }
      if (policy == SharePolicy.BEST_EFFORT && computePercent != null) {
        throw new IllegalArgumentException(
            "best effort promises no share: set policy FIXED_SHARE or BURST_SHARE, or leave out"
                + " computePercent="
                + computePercent);
      }
      if (policy != SharePolicy.BEST_EFFORT && computePercent == null) {
        throw new IllegalArgumentException(
            "the compute share is not set: policy=" + policy + " needs computePercent(1..100)");
      }
      if (memoryMobility == MemoryMobility.MOVABLE
          && (preemptionClass != PreemptionClass.OFFLINE || gpuCount > 1)) {
        throw new IllegalArgumentException(
            "memory is movable for OFFLINE on one GPU alone: preemptionClass="
                + preemptionClass
                + " gpuCount="
                + gpuCount);
      }
      return new VirtualGpuRequest(this, memory);
    }
  }
}
