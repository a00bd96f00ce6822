package dev.vgpu.fleet.model;

import dev.vgpu.MemorySize;
import java.util.Collections;
import java.util.List;

/**
 * A node as it is when nothing runs on it. Immutable.
 *
 * @param name its name, unique in the fleet
 * @param gpuModel the model of its GPUs, which are alike
 * @param gpus how many GPUs it has, at most {@value #MOST_GPUS}
 * @param gpuMemory the memory of each GPU
 * @param cpuMillis thousandths of a processor
 * @param hostMemory host memory
 * @param rack the rack it stands in; empty: not known
 * @param gpuGroups for each GPU the number of its NVLink clique or NUMA node; GPUs with equal
 *     numbers are close. Empty: all are alike
 * @param migCuts how its GPUs can be cut; empty: they are shared or given whole, not cut
 */
public record NodeSpec(
    String name,
    String gpuModel,
    int gpus,
    MemorySize gpuMemory,
    int cpuMillis,
    MemorySize hostMemory,
    String rack,
    List<Integer> gpuGroups,
    List<MigCut> migCuts) {
  /** The most GPUs that a node may have. */
  public static final int MOST_GPUS = 64;

  /**
   * Copies the lists.
   *
   * @throws IllegalArgumentException if a number is out of range
   */
  public NodeSpec {
    gpuGroups =
        gpuGroups.isEmpty() ? Collections.nCopies(Math.max(0, gpus), 0) : List.copyOf(gpuGroups);
    migCuts = List.copyOf(migCuts);
    if (gpus < 0 || gpus > MOST_GPUS || gpuGroups.size() != gpus || cpuMillis < 0) {
      throw new IllegalArgumentException(
          "no such node: name="
              + name
              + " gpus="
              + gpus
              + " gpuGroups="
              + gpuGroups.size()
              + " cpuMillis="
              + cpuMillis);
    }
  }

  /**
   * {@return a node of GPUs that are not cut and equally close to each other}
   *
   * @param name its name
   * @param gpuModel the GPUs' model
   * @param gpus how many
   * @param gpuMemory the memory of each
   * @param cpuMillis thousandths of a processor
   * @param hostMemory host memory
   */
  public static NodeSpec of(
      String name,
      String gpuModel,
      int gpus,
      MemorySize gpuMemory,
      int cpuMillis,
      MemorySize hostMemory) {
    return new NodeSpec(
        name, gpuModel, gpus, gpuMemory, cpuMillis, hostMemory, "", List.of(), List.of());
  }

  /**
   * {@return the same node in a rack}
   *
   * @param newRack the rack's name
   */
  public NodeSpec inRack(String newRack) {
    return new NodeSpec(
        name, gpuModel, gpus, gpuMemory, cpuMillis, hostMemory, newRack, gpuGroups, migCuts);
  }
}
