package dev.vgpu.nvml.mig;

import dev.vgpu.GpuId;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigInstance;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A GPU's MIG side at one moment. Immutable.
 *
 * @param gpu which GPU
 * @param model what people call it
 * @param on whether its MIG mode is on
 * @param pending whether it is to be on after the next reset
 * @param geometry how it can be cut; empty: it cannot
 * @param instances what it is cut into
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
   * @param id NVML's number of it
   * @param profileId its kind
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
   * @param id NVML's number of it in its GPU instance
   * @param device the MIG device that it is
   * @param computeSlices how many of the instance's compute slices it takes
   */
  public record Part(int id, GpuId device, int computeSlices) {}

  /** Where a MIG device is, as {@code NvmlSession.place} has it; empty if it is not there. */
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
   * {@return this for the planner}
   *
   * @param holders who has which instance, by its number
   * @param movable those that may be made anew elsewhere, by their numbers
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
