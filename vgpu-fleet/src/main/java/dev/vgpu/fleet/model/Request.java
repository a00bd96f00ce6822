package dev.vgpu.fleet.model;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.Set;

/** A request for part of the fleet. Immutable; created by a builder. */
public final class Request {
  private final String name;
  private final PreemptionClass preemptionClass;
  private final Shape shape;
  private final String sameNodeAs;
  private final String spread;
  private final Set<String> nodes;

  private Request(String name, Request other) {
    this.name = name;
    this.preemptionClass = other.preemptionClass;
    this.shape = other.shape;
    this.sameNodeAs = other.sameNodeAs;
    this.spread = other.spread;
    this.nodes = other.nodes;
  }

  private Request(Builder builder) {
    this.name = builder.name;
    this.preemptionClass = builder.preemptionClass;
    this.sameNodeAs = builder.sameNodeAs;
    this.spread = builder.spread;
    this.nodes = builder.nodes;
    this.shape =
        new Shape(
            builder.gpus,
            builder.isWhole || !builder.migProfile.isEmpty() ? 0 : builder.sharePercent,
            builder.isWhole,
            builder.preemptionClass == PreemptionClass.OFFLINE,
            NodeKind.mebibytesFor(builder.memory.bytes()),
            builder.memoryPercent,
            builder.cpuMillis,
            NodeKind.mebibytesFor(builder.hostMemory.bytes()),
            builder.models,
            builder.migProfile);
  }

  /**
   * {@return a builder; without further settings, the request needs no GPU}
   *
   * @param name unique among waiting and placed requests
   */
  public static Builder builder(String name) {
    return new Builder(name);
  }

  /**
   * {@return the same request under another name}
   *
   * @param newName the name
   */
  public Request named(String newName) {
    return new Request(newName, this);
  }

  /** {@return its name} */
  public String name() {
    return name;
  }

  /** {@return its class} */
  public PreemptionClass preemptionClass() {
    return preemptionClass;
  }

  /** {@return the part that decides where it fits} */
  public Shape shape() {
    return shape;
  }

  /** {@return the request whose node it must share; empty if none} */
  public String sameNodeAs() {
    return sameNodeAs;
  }

  /**
   * {@return the group whose members must be on different nodes, evenly over racks; empty if none}
   */
  public String spread() {
    return spread;
  }

  /** {@return the names of the allowed nodes; empty for any} */
  public Set<String> nodes() {
    return nodes;
  }

  /**
   * {@return whether a node is allowed}
   *
   * @param node the node's name
   */
  public boolean allows(String node) {
    return nodes.isEmpty() || nodes.contains(node);
  }

  /**
   * {@return whether another request fits where this one does, whatever their names}
   *
   * @param other the other request
   */
  public boolean fitsLike(Request other) {
    return shape.equals(other.shape)
        && sameNodeAs.equals(other.sameNodeAs)
        && spread.equals(other.spread)
        && nodes.equals(other.nodes);
  }

  @Override
  public String toString() {
    return name + " " + shape;
  }

  /** Builds a request. Confined to one thread. */
  public static final class Builder {
    private static final int MOST_PERCENT = 100;

    private final String name;
    private PreemptionClass preemptionClass = PreemptionClass.NEARLINE;
    private int gpus;
    private int sharePercent;
    private boolean isWhole;
    private MemorySize memory = MemorySize.ZERO;
    private double memoryPercent;
    private int cpuMillis;
    private MemorySize hostMemory = MemorySize.ZERO;
    private Set<String> models = Set.of();
    private String migProfile = "";
    private String sameNodeAs = "";
    private String spread = "";
    private Set<String> nodes = Set.of();

    private Builder(String name) {
      this.name = requireNonNull(name, "name");
    }

    /**
     * Asks for a share of one GPU.
     *
     * @param percent 1 to 100
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder share(int percent) {
      return shares(1, percent);
    }

    /**
     * Asks for the same share of each of several GPUs of one node.
     *
     * @param count 1 or more
     * @param percent 1 to 100
     * @return this builder
     * @throws IllegalArgumentException if one is out of range
     */
    public Builder shares(int count, int percent) {
      if (percent < 1 || percent > MOST_PERCENT) {
        throw new IllegalArgumentException(
            "a share is 1 to 100 percent of a GPU: request=" + name + " share=" + percent);
      }
      gpus = positive(count);
      sharePercent = percent;
      isWhole = false;
      return this;
    }

    /**
     * Asks for memory on GPUs of one node, without a guaranteed share. The request must set memory;
     * otherwise these GPUs would still count as unused.
     *
     * @param count 1 or more
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder bestEffort(int count) {
      gpus = positive(count);
      sharePercent = 0;
      isWhole = false;
      return this;
    }

    /**
     * Asks for unshared GPUs, all on one node.
     *
     * @param count 1 or more
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder wholeGpus(int count) {
      gpus = positive(count);
      isWhole = true;
      return this;
    }

    /**
     * Asks for a MIG instance.
     *
     * @param profile its kind
     * @return this builder
     */
    public Builder migInstance(String profile) {
      gpus = 1;
      isWhole = false;
      migProfile = requireNonNull(profile, "profile");
      return this;
    }

    private int positive(int count) {
      if (count < 1 || count > NodeSpec.MOST_GPUS) {
        throw new IllegalArgumentException(
            "a number of GPUs is 1 to 64: request=" + name + " gpus=" + count);
      }
      return count;
    }

    /**
     * Sets the memory on each GPU.
     *
     * @param size rounded up to MiB
     * @return this builder
     */
    public Builder memory(MemorySize size) {
      memory = size;
      return this;
    }

    /**
     * Sets the memory on each GPU as a part of the GPU's memory. If {@link #memory} is set too, the
     * larger value applies.
     *
     * @param percent 0 to 100; need not be a whole number
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder memoryPercent(double percent) {
      if (!(percent >= 0 && percent <= MOST_PERCENT)) {
        throw new IllegalArgumentException(
            "a part of a card's memory is 0 to 100 percent: request="
                + name
                + " memoryPercent="
                + percent);
      }
      memoryPercent = percent;
      return this;
    }

    /**
     * Sets the need for processors and host memory.
     *
     * @param millis processors, in thousandths; 0 or more
     * @param size host memory, rounded up to MiB
     * @return this builder
     * @throws IllegalArgumentException if {@code millis} is negative
     */
    public Builder host(int millis, MemorySize size) {
      if (millis < 0) {
        throw new IllegalArgumentException(
            "processors are 0 or more: request=" + name + " cpuMillis=" + millis);
      }
      cpuMillis = millis;
      hostMemory = size;
      return this;
    }

    /**
     * Sets the allowed GPU models.
     *
     * @param names empty for any
     * @return this builder
     */
    public Builder models(Set<String> names) {
      models = Set.copyOf(names);
      return this;
    }

    /**
     * Sets the class.
     *
     * @param newClass the class
     * @return this builder
     */
    public Builder preemptionClass(PreemptionClass newClass) {
      preemptionClass = newClass;
      return this;
    }

    /**
     * Demands the node of another request.
     *
     * @param other that request's name
     * @return this builder
     */
    public Builder sameNodeAs(String other) {
      sameNodeAs = other;
      return this;
    }

    /**
     * Demands a node without another member of a group.
     *
     * @param group the group's name
     * @return this builder
     */
    public Builder spread(String group) {
      spread = group;
      return this;
    }

    /**
     * Sets the allowed nodes.
     *
     * @param names empty for any
     * @return this builder
     */
    public Builder nodes(Set<String> names) {
      nodes = Set.copyOf(names);
      return this;
    }

    /**
     * {@return the request}
     *
     * @throws IllegalArgumentException if it shares GPUs without asking for a share or memory
     */
    public Request build() {
      boolean isBestEffort = gpus > 0 && !isWhole && migProfile.isEmpty() && sharePercent == 0;
      if (isBestEffort && memory.bytes() == 0 && memoryPercent == 0) {
        throw new IllegalArgumentException(
            "a part of a GPU without a share needs memory: request=" + name);
      }
      return new Request(this);
    }
  }
}
