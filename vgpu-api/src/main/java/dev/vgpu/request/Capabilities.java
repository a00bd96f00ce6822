package dev.vgpu.request;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * The guarantees that a backend can enforce, or that a request demands. Immutable. The constants of
 * each kind are declared from weakest to strongest.
 */
public final class Capabilities {
  /** How a memory quota binds. */
  public enum Memory {
    /** Not at all. */
    NONE,
    /** By the budgets that calls state. */
    SOFT,
    /** On every allocation. */
    EXACT
  }

  /** How a compute share binds. */
  public enum Compute {
    /** Not at all. */
    NONE,
    /** In time: one tenant after the other. */
    TURNS,
    /** In space: each tenant has multiprocessors of its own. */
    SPATIAL
  }

  /** Where a tenant can be interrupted. */
  public enum Preemption {
    /** Nowhere. */
    NONE,
    /** When a call ends or is cancelled. */
    BETWEEN_CALLS,
    /** When a kernel ends. */
    BETWEEN_KERNELS,
    /** At any moment. */
    INSIDE_KERNEL
  }

  /** Whether one tenant's crash can reach another. */
  public enum FaultIsolation {
    /** They fail together. */
    NONE,
    /** Each fails alone. */
    ISOLATED
  }

  /** The kinds of code that can run under a virtual GPU. */
  public enum Scope {
    /** Calls in this JVM. */
    THIS_JVM,
    /** An unmodified process. */
    PROCESS,
    /** A container. */
    CONTAINER,
    /** A virtual machine. */
    VM,
    /**
     * Code of another user than the one that holds the seat. The pool demands it of each request of
     * a member of the seat's group.
     */
    OTHER_USERS
  }

  private final Memory memory;
  private final Compute compute;
  private final Preemption preemption;
  private final FaultIsolation faultIsolation;
  private final Set<Scope> worksFor;

  private Capabilities(Builder builder) {
    this.memory = builder.memory;
    this.compute = builder.compute;
    this.preemption = builder.preemption;
    this.faultIsolation = builder.faultIsolation;
    this.worksFor = Set.copyOf(builder.worksFor);
  }

  /** {@return a builder of capabilities that enforce nothing} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return how a memory quota binds} */
  public Memory memory() {
    return memory;
  }

  /** {@return how a compute share binds} */
  public Compute compute() {
    return compute;
  }

  /** {@return where a tenant can be interrupted} */
  public Preemption preemption() {
    return preemption;
  }

  /** {@return whether one tenant's crash can reach another} */
  public FaultIsolation faultIsolation() {
    return faultIsolation;
  }

  /** {@return the kinds of code that can run under the virtual GPU} */
  public Set<Scope> worksFor() {
    return worksFor;
  }

  /**
   * {@return the stronger of each kind, and the scopes of both}
   *
   * @param other the capabilities or demands to add
   */
  public Capabilities and(Capabilities other) {
    return builder()
        .memory(stronger(memory, other.memory))
        .compute(stronger(compute, other.compute))
        .preemption(stronger(preemption, other.preemption))
        .faultIsolation(stronger(faultIsolation, other.faultIsolation))
        .worksFor(worksFor.toArray(new Scope[0]))
        .worksFor(other.worksFor.toArray(new Scope[0]))
        .build();
  }

  private static <E extends Enum<E>> E stronger(E one, E other) {
    return one.compareTo(other) >= 0 ? one : other;
  }

  /**
   * Compares these capabilities with a demand.
   *
   * @param demanded the least that is needed
   * @return the missing capabilities, for example {@code memory EXACT (has SOFT)}; empty if none is
   *     missing
   */
  public List<String> missingFor(Capabilities demanded) {
    List<String> missing = new ArrayList<>();
    compare("memory", memory, demanded.memory, missing);
    compare("compute", compute, demanded.compute, missing);
    compare("preemption", preemption, demanded.preemption, missing);
    compare("faultIsolation", faultIsolation, demanded.faultIsolation, missing);
    for (Scope scope : demanded.worksFor.stream().sorted().toList()) {
      if (!worksFor.contains(scope)) {
        missing.add("worksFor " + scope);
      }
    }
    return missing;
  }

  private static <E extends Enum<E>> void compare(
      String what, E has, E demanded, List<String> missing) {
    if (has.compareTo(demanded) < 0) {
      missing.add(what + " " + demanded + " (has " + has + ")");
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Capabilities that
        && memory == that.memory
        && compute == that.compute
        && preemption == that.preemption
        && faultIsolation == that.faultIsolation
        && worksFor.equals(that.worksFor);
  }

  @Override
  public int hashCode() {
    return Objects.hash(memory, compute, preemption, faultIsolation, worksFor);
  }

  /** {@return all capabilities, in words} */
  @Override
  public String toString() {
    return "memory="
        + memory
        + " compute="
        + compute
        + " preemption="
        + preemption
        + " faultIsolation="
        + faultIsolation
        + " worksFor="
        + worksFor.stream().sorted().toList();
  }

  /** Builds capabilities. Not safe for use by several threads. */
  public static final class Builder {
    private Memory memory = Memory.NONE;
    private Compute compute = Compute.NONE;
    private Preemption preemption = Preemption.NONE;
    private FaultIsolation faultIsolation = FaultIsolation.NONE;
    private final Set<Scope> worksFor = EnumSet.noneOf(Scope.class);

    private Builder() {}

    /**
     * Sets how a memory quota binds.
     *
     * @param memory default {@link Memory#NONE}
     * @return this builder
     */
    public Builder memory(Memory memory) {
      this.memory = requireNonNull(memory, "memory");
      return this;
    }

    /**
     * Sets how a compute share binds.
     *
     * @param compute default {@link Compute#NONE}
     * @return this builder
     */
    public Builder compute(Compute compute) {
      this.compute = requireNonNull(compute, "compute");
      return this;
    }

    /**
     * Sets where a tenant can be interrupted.
     *
     * @param preemption default {@link Preemption#NONE}
     * @return this builder
     */
    public Builder preemption(Preemption preemption) {
      this.preemption = requireNonNull(preemption, "preemption");
      return this;
    }

    /**
     * Sets whether one tenant's crash can reach another.
     *
     * @param faultIsolation default {@link FaultIsolation#NONE}
     * @return this builder
     */
    public Builder faultIsolation(FaultIsolation faultIsolation) {
      this.faultIsolation = requireNonNull(faultIsolation, "faultIsolation");
      return this;
    }

    /**
     * Adds kinds of code that can run under the virtual GPU.
     *
     * @param scopes one or more kinds
     * @return this builder
     */
    public Builder worksFor(Scope... scopes) {
      worksFor.addAll(List.of(scopes));
      return this;
    }

    /** {@return the capabilities} */
    public Capabilities build() {
      return new Capabilities(this);
    }
  }
}
