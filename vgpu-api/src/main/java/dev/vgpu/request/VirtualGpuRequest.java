package dev.vgpu.request;

import static java.util.Objects.requireNonNull;

import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A request for a virtual GPU: how much of a GPU, and on what terms. Immutable. */
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
  private final List<GpuId> gpus;
  private final int gpuCount;
  private final Capabilities requires;
  private final @Nullable String backend;
  private final @Nullable String part;
  private final FailureMode failureMode;
  private final MemoryMobility memoryMobility;

  private VirtualGpuRequest(Builder builder, MemorySize memory) {
    this.name = builder.name;
    this.computePercent = builder.computePercent;
    this.memory = memory;
    this.policy = builder.policy;
    this.preemptionClass = builder.preemptionClass;
    this.maxConcurrentCalls = builder.maxConcurrentCalls;
    this.gpus = builder.gpus;
    this.gpuCount = builder.gpuCount;
    this.requires = builder.requires;
    this.backend = builder.backend;
    this.part = builder.part;
    this.failureMode = builder.failureMode;
    this.memoryMobility = builder.memoryMobility;
  }

  /** {@return a builder that holds the defaults} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return a builder with the values of this request} */
  public Builder toBuilder() {
    Builder builder = new Builder();
    builder.name = name;
    builder.computePercent = computePercent;
    builder.memory = memory;
    builder.policy = policy;
    builder.preemptionClass = preemptionClass;
    builder.maxConcurrentCalls = maxConcurrentCalls;
    builder.gpus = gpus;
    builder.gpuCount = gpuCount;
    builder.requires = requires;
    builder.backend = backend;
    builder.part = part;
    builder.failureMode = failureMode;
    builder.memoryMobility = memoryMobility;
    return builder;
  }

  /** {@return the tenant's name for people; need not be unique} */
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

  /** {@return how many calls may run inside the turn at the same time} */
  public int maxConcurrentCalls() {
    return maxConcurrentCalls;
  }

  /** {@return the GPU to cut it from, or one of several; empty means any} */
  public Optional<GpuId> gpu() {
    return gpus.stream().findFirst();
  }

  /** {@return the GPUs to cut it from; if fewer than {@link #gpuCount}, the pool adds others} */
  public List<GpuId> gpus() {
    return gpus;
  }

  /** {@return how many GPUs it is cut from, 1 to {@value #MAX_GPU_COUNT}} */
  public int gpuCount() {
    return gpuCount;
  }

  /** {@return the capabilities that the backend must have} */
  public Capabilities requires() {
    return requires;
  }

  /** {@return the only backend that may serve it; empty means any} */
  public Optional<String> backend() {
    return Optional.ofNullable(backend);
  }

  /** {@return the part of the GPU, {@code PROFILE} or {@code PROFILE:START}; empty means any} */
  public Optional<String> part() {
    return Optional.ofNullable(part);
  }

  /** {@return what happens if no backend has the demanded capabilities} */
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
        + (gpus.isEmpty() ? "" : gpus.size() == 1 ? " gpu=" + gpus.get(0) : " gpus=" + gpus)
        + (gpuCount == 1 ? "" : " gpuCount=" + gpuCount)
        + (backend == null ? "" : " backend=" + backend)
        + (part == null ? "" : " part=" + part)
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
    private List<GpuId> gpus = List.of();
    private int gpuCount = 1;
    private Capabilities requires = NOTHING;
    private @Nullable String backend;
    private @Nullable String part;
    private FailureMode failureMode = FailureMode.REFUSE;
    private MemoryMobility memoryMobility = MemoryMobility.FIXED;

    private Builder() {}

    /**
     * Sets the tenant's name, which people see in messages, events and tables.
     *
     * @param name 1 to 63 letters, digits, dots, dashes and underscores, starting with a letter or
     *     digit; default {@code vgpu}
     * @return this builder
     * @throws IllegalArgumentException if the name does not have that form
     */
    public Builder name(String name) {
      if (!NAME.matcher(requireNonNull(name, "name")).matches()) {
        throw new IllegalArgumentException(
            "invalid tenant name: '"
                + name
                + "' (1 to 63 letters, digits, dots, dashes, underscores)");
      }
      this.name = name;
      return this;
    }

    /**
     * Sets the share. Required by {@link SharePolicy#FIXED_SHARE} and {@link
     * SharePolicy#BURST_SHARE}. Refused with {@link SharePolicy#BEST_EFFORT}, which guarantees no
     * share.
     *
     * @param computePercent 1 to 100 percent of the time of each GPU
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
     * Sets the memory quota on each GPU. Required.
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
     * Sets the policy to best effort and removes the share. Useful when the builder comes from
     * another request.
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
     * Bounds how many calls may run inside the tenant's turn at the same time. Further calls wait,
     * in order of class, then arrival. Set it to 1 if a single call fills the device.
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
     * Sets the GPU to cut it from. By default the pool chooses one on which the request fits. If
     * {@link #gpuCount} is above 1, this GPU is one of them and the pool chooses the others.
     *
     * @param gpu one of {@link dev.vgpu.GpuPool#gpus()}
     * @return this builder
     */
    public Builder gpu(GpuId gpu) {
      this.gpus = List.of(requireNonNull(gpu, "gpu"));
      return this;
    }

    /**
     * Sets the GPUs to cut it from, all or none. Also sets {@link #gpuCount} to their number. The
     * order does not matter.
     *
     * @param gpus 1 to {@value VirtualGpuRequest#MAX_GPU_COUNT} different ones of {@link
     *     dev.vgpu.GpuPool#gpus()}
     * @return this builder
     * @throws IllegalArgumentException if there are none, too many, or two equal ones
     */
    public Builder gpus(Collection<GpuId> gpus) {
      List<GpuId> all = List.copyOf(requireNonNull(gpus, "gpus"));
      if (all.isEmpty() || Set.copyOf(all).size() < all.size()) {
        throw new IllegalArgumentException("not one or several different GPUs: gpus=" + all);
      }
      gpuCount(all.size());
      this.gpus = all;
      return this;
    }

    /**
     * Asks for several GPUs, all or none. The share and the quota are granted on each GPU. A turn
     * covers all GPUs together, and its GPU time is charged to each. The memory of its programs is
     * counted on each GPU by itself. The hook can count it on at most 8 GPUs, and refuses more.
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
     * Sets the capabilities that the backend must have.
     *
     * @param requires at least this; default: nothing
     * @return this builder
     */
    public Builder requires(Capabilities requires) {
      this.requires = requireNonNull(requires, "requires");
      return this;
    }

    /**
     * Adds a demand on how the memory quota binds.
     *
     * @param memory at least this
     * @return this builder
     */
    public Builder require(Capabilities.Memory memory) {
      return andRequire(Capabilities.builder().memory(memory));
    }

    /**
     * Adds a demand on how the compute share binds.
     *
     * @param compute at least this
     * @return this builder
     */
    public Builder require(Capabilities.Compute compute) {
      return andRequire(Capabilities.builder().compute(compute));
    }

    /**
     * Adds a demand on where the tenant can be interrupted for others.
     *
     * @param preemption at least this
     * @return this builder
     */
    public Builder require(Capabilities.Preemption preemption) {
      return andRequire(Capabilities.builder().preemption(preemption));
    }

    /**
     * Adds a demand on whether another tenant's crash may reach this one.
     *
     * @param faultIsolation at least this
     * @return this builder
     */
    public Builder require(Capabilities.FaultIsolation faultIsolation) {
      return andRequire(Capabilities.builder().faultIsolation(faultIsolation));
    }

    /**
     * Adds a demand on the kinds of code that can run under the virtual GPU.
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
     * Names the only backend that may serve the request, even if another one costs less. By default
     * the pool chooses.
     *
     * @param backend the name of one of {@link dev.vgpu.GpuPool#backends()}
     * @return this builder
     * @throws IllegalArgumentException if no backend can have this name
     */
    public Builder backend(String backend) {
      if (!NAME.matcher(requireNonNull(backend, "backend")).matches()) {
        throw new IllegalArgumentException("not a backend's name: '" + backend + "'");
      }
      this.backend = backend;
      return this;
    }

    /**
     * Asks for an exact part of one GPU, alone. Only a backend that makes such parts serves it.
     *
     * @param part a {@link GpuPart#profile()}, at any place, or a {@link GpuPart#name()}
     * @return this builder
     * @throws IllegalArgumentException if no part can have this name
     */
    public Builder part(String part) {
      this.part = GpuPart.checked(part);
      return this;
    }

    /**
     * Sets what happens if no backend has the demanded capabilities.
     *
     * @param failureMode default {@link FailureMode#REFUSE}
     * @return this builder
     */
    public Builder failureMode(FailureMode failureMode) {
      this.failureMode = requireNonNull(failureMode, "failureMode");
      return this;
    }

    /**
     * Sets whether memory can leave the GPU, allocation by allocation, while the tenant is
     * suspended. Only for {@link PreemptionClass#OFFLINE} on a single GPU. Applies to later
     * allocations.
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
     * @throws IllegalArgumentException if the memory is not set, if the share does not match the
     *     policy, if more GPUs are named than {@link #gpuCount}, if a part of several GPUs is asked
     *     for, or if memory is movable on several GPUs or in a class other than offline
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
      if (gpus.size() > gpuCount) {
        throw new IllegalArgumentException(
            "more GPUs are named than are asked: gpus=" + gpus + " gpuCount=" + gpuCount);
      }
      if (part != null && gpuCount > 1) {
        throw new IllegalArgumentException(
            "a part is of one GPU: part=" + part + " gpuCount=" + gpuCount);
      }
      if (memoryMobility == MemoryMobility.MOVABLE
          && (preemptionClass != PreemptionClass.OFFLINE || gpuCount > 1)) {
        throw new IllegalArgumentException(
            "movable memory needs class OFFLINE and a single GPU: preemptionClass="
                + preemptionClass
                + " gpuCount="
                + gpuCount);
      }
      return new VirtualGpuRequest(this, memory);
    }
  }
}
