package dev.vgpu.core.reclaim;

import dev.vgpu.PreemptionClass;
import java.util.Set;

/**
 * A tenant of a GPU as it is at one moment. Immutable.
 *
 * @param id the virtual GPU's name
 * @param name the name in its request
 * @param preemptionClass who it yields to
 * @param memoryBytes what it holds; while suspended, off the GPU
 * @param workNs the GPU time that would be lost if it were ended
 * @param canAsk whether its owner can be asked to free memory
 * @param canSuspend whether its processes can be suspended
 * @param processes those that may be ended, by their ids; none: it cannot be ended
 * @param suspended whether it is suspended
 * @param kept whether it stays suspended until its owner says otherwise
 */
public record TenantReading(
    String id,
    String name,
    PreemptionClass preemptionClass,
    long memoryBytes,
    long workNs,
    boolean canAsk,
    boolean canSuspend,
    Set<Long> processes,
    boolean suspended,
    boolean kept) {
  /** Copies the set. */
  public TenantReading {
    processes = Set.copyOf(processes);
  }

  /**
   * Makes one that goes on when there is room.
   *
   * @param id the virtual GPU's name
   * @param name the name in its request
   * @param preemptionClass who it yields to
   * @param memoryBytes what it holds; while suspended, off the GPU
   * @param workNs the GPU time that would be lost if it were ended
   * @param canAsk whether its owner can be asked to free memory
   * @param canSuspend whether its processes can be suspended
   * @param processes those that may be ended, by their ids; none: it cannot be ended
   * @param suspended whether it is suspended
   */
  public TenantReading(
      String id,
      String name,
      PreemptionClass preemptionClass,
      long memoryBytes,
      long workNs,
      boolean canAsk,
      boolean canSuspend,
      Set<Long> processes,
      boolean suspended) {
    this(
        id,
        name,
        preemptionClass,
        memoryBytes,
        workNs,
        canAsk,
        canSuspend,
        processes,
        suspended,
        false);
  }

  /** {@return what it holds of the GPU's memory} */
  long onGpuBytes() {
    return suspended ? 0 : memoryBytes;
  }
}
