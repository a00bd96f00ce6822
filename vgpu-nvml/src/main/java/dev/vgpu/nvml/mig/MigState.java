package dev.vgpu.nvml.mig;

import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigInstance;
import dev.vgpu.request.GpuId;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A GPU's MIG state at one moment. Immutable.
 *
 * @param gpu which GPU
 * @param model its marketing name
 * @param on whether its MIG mode is on
 * @param pending whether MIG mode will be on after the next reset
 * @param geometry how it can be partitioned; empty if it cannot
 * @param instances its instances
 */
public record MigState(
    GpuId gpu,
    String model,
    boolean on,
    boolean pending,
    Optional<MigGeometry> geometry,
    List<Instance> instances) {
  /** Copies the list. */
  public MigState {
    instances = List.copyOf(instances);
  }

  /**
   * A GPU instance.
   *
   * @param id its NVML number
   * @param profileId its profile
   * @param start its first memory slice
   * @param memorySlices how many it takes
   * @param computeSlices how many it takes
   * @param parts its compute instances
   */
  public record Instance(
      int id, int profileId, int start, int memorySlices, int computeSlices, List<Part> parts) {
    /** Copies the list. */
    public Instance {
      parts = List.copyOf(parts);
    }

    /** {@return the compute slices that no compute instance has} */
    public int freeSlices() {
      return computeSlices - parts.stream().mapToInt(Part::computeSlices).sum();
    }

    boolean has(GpuId device) {
      return parts.stream().anyMatch(part -> part.device().equals(device));
    }
  }

  /**
   * A compute instance.
   *
   * @param id its NVML number in its GPU instance
   * @param device its MIG device
   * @param computeSlices how many of the instance's compute slices it takes
   */
  public record Part(int id, GpuId device, int computeSlices) {}

  /** {@return the place of a MIG device, as {@code NvmlSession.place} has it; empty if absent} */
  Optional<String> place(GpuId device) {
    for (Instance instance : instances) {
      for (Part part : instance.parts()) {
        if (part.device().equals(device)) {
          return Optional.of(gpu + "/" + instance.id() + "/" + part.id());
        }
      }
    }
    return Optional.empty();
  }

  /**
   * {@return this state for the planner}
   *
   * @param holders the holder of each instance, by its number
   * @param movable the numbers of the instances that may be created again elsewhere
   */
  public Optional<MigGpu> planned(Map<Integer, String> holders, Set<Integer> movable) {
    return geometry.map(
        known ->
            new MigGpu(
                gpu,
                known,
                instances.stream()
                    .map(
                        each ->
                            new MigInstance(
                                each.id(),
                                each.profileId(),
                                each.start(),
                                each.memorySlices(),
                                each.computeSlices(),
                                holders.getOrDefault(each.id(), ""),
                                movable.contains(each.id())))
                    .toList()));
  }
}
