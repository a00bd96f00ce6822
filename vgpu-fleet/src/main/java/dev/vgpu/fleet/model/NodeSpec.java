package dev.vgpu.fleet.model;

import dev.vgpu.request.MemorySize;
import java.util.Collections;
import java.util.List;

/**
 * A node when it is empty. Immutable.
 *
 * @param name its name, unique in the fleet
 * @param gpuModel the model of its GPUs, all of which are equal
 * @param gpus the number of GPUs, at most {@value #MOST_GPUS}
 * @param gpuMemory the memory of each GPU
 * @param cpuMillis processors, in thousandths
 * @param hostMemory host memory
 * @param rack its rack; empty if unknown
 * @param gpuGroups the number of each GPU's NVLink clique or NUMA node; GPUs with equal numbers are
 *     close. If empty, all are equally close
 * @param migCuts the kinds of MIG instances that its GPUs can be divided into; if empty, GPUs are
 *     shared or given whole
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
   * {@return a node without MIG, whose GPUs are equally close to each other}
   *
   * @param name its name
   * @param gpuModel the model of its GPUs
   * @param gpus the number of GPUs
   * @param gpuMemory the memory of each GPU
   * @param cpuMillis processors, in thousandths
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
   * {@return the same node in another rack}
   *
   * @param newRack the rack's name
   */
  public NodeSpec inRack(String newRack) {
    return new NodeSpec(
        name, gpuModel, gpus, gpuMemory, cpuMillis, hostMemory, newRack, gpuGroups, migCuts);
  }
}
