package dev.vgpu;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How one call is run. Immutable; create once and reuse for every call of a kind. */
public final class CallOptions {
  /** How often a {@link PreemptibleCall} is cancelled at most, by default. */
  public static final int DEFAULT_MAX_PREEMPTIONS = 16;

  private static final CallOptions DEFAULTS = builder().build();

  private final @Nullable Duration timeout;
  private final MemorySize memory;
  private final @Nullable PreemptionClass preemptionClass;
  private final int maxPreemptions;

  private CallOptions(Builder builder) {
    this.timeout = builder.timeout;
    this.memory = builder.memory;
    this.preemptionClass = builder.preemptionClass;
    this.maxPreemptions = builder.maxPreemptions;
  }

  /** {@return options without timeout and memory budget, in the virtual GPU's own class} */
  public static CallOptions defaults() {
    return DEFAULTS;
  }

  /**
   * {@return the defaults with this memory budget}
   *
   * @param peak the memory that the call needs at its peak
   */
  public static CallOptions ofMemory(MemorySize peak) {
    return builder().memory(peak).build();
  }

  /**
   * {@return the defaults with this timeout}
   *
   * @param timeout how long the call may wait before it starts; 0 or more
   */
  public static CallOptions ofTimeout(Duration timeout) {
    return builder().timeout(timeout).build();
  }

  /** {@return a builder that holds the defaults} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return a builder with these options} */
  public Builder toBuilder() {
    Builder builder = new Builder();
    builder.timeout = timeout;
    builder.memory = memory;
    builder.preemptionClass = preemptionClass;
    builder.maxPreemptions = maxPreemptions;
    return builder;
  }

  /** {@return how long the call may wait before it starts; empty means without limit} */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }

  /**
   * {@return the memory that the call needs at its peak; {@link MemorySize#ZERO} means none stated}
   */
  public MemorySize memory() {
    return memory;
  }

  /**
   * {@return the class by which the call is ordered among the waiting calls of its virtual GPU;
   * empty means the virtual GPU's own}
   */
  public Optional<PreemptionClass> preemptionClass() {
    return Optional.ofNullable(preemptionClass);
  }

  /** {@return how many attempts of a {@link PreemptibleCall} may be cancelled} */
  public int maxPreemptions() {
    return maxPreemptions;
  }

  /** Builds options. Not safe for use by several threads. */
  public static final class Builder {
    private @Nullable Duration timeout;
    private MemorySize memory = MemorySize.ZERO;
    private @Nullable PreemptionClass preemptionClass;
    private int maxPreemptions = DEFAULT_MAX_PREEMPTIONS;

    private Builder() {}

    /**
     * Bounds how long the call waits for its turn and for memory before it starts. The time that a
     * started call runs is not bounded, nor is the wait of a cancelled attempt for its next turn.
     *
     * @param timeout 0 or more; 0 means start at once or not at all
     * @return this builder
     * @throws IllegalArgumentException if negative
     */
    public Builder timeout(Duration timeout) {
      if (requireNonNull(timeout, "timeout").isNegative()) {
        throw new IllegalArgumentException("a timeout is negative: timeout=" + timeout);
      }
      this.timeout = timeout;
      return this;
    }

    /**
     * Sets the memory that the call needs at its peak. If the budgets of several calls of a virtual
     * GPU do not fit its quota together, some calls wait, in order of class, then arrival; none
     * starves.
     *
     * @param peak above 0
     * @return this builder
     * @throws IllegalArgumentException if 0
     */
    public Builder memory(MemorySize peak) {
      if (requireNonNull(peak, "peak").bytes() == 0) {
        throw new IllegalArgumentException("a call's memory budget is 0: leave it out instead");
      }
      this.memory = peak;
      return this;
    }

    /**
     * Sets the class by which the call is ordered among the waiting calls of its virtual GPU. It
     * does not change which tenants the virtual GPU preempts.
     *
     * @param preemptionClass the call's class
     * @return this builder
     */
    public Builder preemptionClass(PreemptionClass preemptionClass) {
      this.preemptionClass = requireNonNull(preemptionClass, "preemptionClass");
      return this;
    }

    /**
     * Bounds how many attempts of a {@link PreemptibleCall} may be cancelled; the next attempt
     * cannot be. Default {@value CallOptions#DEFAULT_MAX_PREEMPTIONS}.
     *
     * @param maxPreemptions 0 or more; 0 means never cancelled
     * @return this builder
     * @throws IllegalArgumentException if negative
     */
    public Builder maxPreemptions(int maxPreemptions) {
      if (maxPreemptions < 0) {
        throw new IllegalArgumentException(
            "a number of preemptions is negative: maxPreemptions=" + maxPreemptions);
      }
      this.maxPreemptions = maxPreemptions;
      return this;
    }

    /** {@return the options} */
    public CallOptions build() {
      return new CallOptions(this);
    }
  }
}
