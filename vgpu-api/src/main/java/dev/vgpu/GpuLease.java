package dev.vgpu;

import java.util.List;
import java.util.Optional;

/**
 * The holder of a part of a GPU: a virtual GPU as others see it. A snapshot; immutable. May gain
 * methods.
 */
public interface GpuLease {
  /** {@return the name that is unique within the pool, for example {@code embed-3}} */
  String id();

  /** {@return the GPU that it was cut from, or the first of them} */
  GpuId gpu();

  /** {@return the GPUs that it was cut from, {@link #gpu()} first; one, but for a gang} */
  default List<GpuId> gpus() {
    return List.of(gpu());
  }

  /** {@return the granted terms} */
  VirtualGpuRequest request();

  /** {@return the process that holds it} */
  long pid();

  /**
   * {@return the percent of its GPU's time that it is entitled to when every tenant of its class
   * has work: its share, or for best effort an equal part of the time that the guaranteed shares
   * leave}
   */
  double entitledPercent();

  /** {@return the processes that are under it, by their ids in their own namespaces} */
  List<Long> processes();

  /**
   * {@return whether its processes are suspended: their memory is off the GPU, their work waits}
   */
  default boolean isSuspended() {
    return false;
  }

  /**
   * {@return the part of {@link GpuUsage#memoryUsed()} that is in the host's memory now, because it
   * is suspended; it counts for the quota all the same}
   */
  default MemorySize memorySuspended() {
    return isSuspended() ? usage().memoryUsed() : MemorySize.ZERO;
  }

  /**
   * {@return the name of the backend that enforces it, or will for its programs; empty while none
   * is chosen, and its calls take turns inside their JVM}
   */
  default Optional<String> backend() {
    return Optional.empty();
  }

  /**
   * {@return how many calls of driver functions its processes have made that are let through
   * without being gated or counted, since what enforces it does not know them} If it is above 0,
   * some of their work may be held to neither share nor quota.
   */
  default long passedThrough() {
    return 0;
  }

  /**
   * {@return where the programs under it can be interrupted now, when a more urgent tenant comes:
   * as the weakest of them can; empty while there is none} What is only known at run time is in
   * here, other than in {@link VirtualGpu#capabilities()} of before: whether the driver at hand
   * stops what runs.
   */
  default Optional<Capabilities.Preemption> preemption() {
    return Optional.empty();
  }

  /**
   * {@return why the programs under it cannot be interrupted inside a kernel, in words; empty if
   * they can, or there is none}
   */
  default Optional<String> preemptionReason() {
    return Optional.empty();
  }

  /** {@return its use at the moment of the snapshot} */
  GpuUsage usage();

  /**
   * {@return why what runs under it cannot be relied on, in words: one of its GPUs is lost, or has
   * a fault; empty if nothing is known to be wrong}
   */
  default Optional<String> impaired() {
    return Optional.empty();
  }
}
