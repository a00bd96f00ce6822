package dev.vgpu.core.reclaim;

import dev.vgpu.request.PreemptionClass;
import java.util.Set;

/**
 * A snapshot of a GPU's tenant. Immutable.
 *
 * @param id the virtual GPU's name
 * @param name the name in its request
 * @param preemptionClass its class
 * @param memoryBytes the memory that it holds; while it is suspended, off the GPU
 * @param workNs the GPU time that would be lost if it were ended
 * @param canAsk whether its owner can be asked to free memory
 * @param canSuspend whether its processes can be suspended
 * @param processes the pids of processes that may be ended; if empty, it cannot be ended
 * @param suspended whether it is suspended
 * @param kept whether its owner suspended it, so that only the owner resumes it
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
   * Creates a reading of a tenant that may be resumed when there is room.
   *
   * @param id the virtual GPU's name
   * @param name the name in its request
   * @param preemptionClass its class
   * @param memoryBytes the memory that it holds; while it is suspended, off the GPU
   * @param workNs the GPU time that would be lost if it were ended
   * @param canAsk whether its owner can be asked to free memory
   * @param canSuspend whether its processes can be suspended
   * @param processes the pids of processes that may be ended; if empty, it cannot be ended
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

  /** {@return the memory that it holds on the GPU} */
  long onGpuBytes() {
    return suspended ? 0 : memoryBytes;
  }
}
