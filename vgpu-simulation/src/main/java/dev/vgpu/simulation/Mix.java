package dev.vgpu.simulation;

import dev.vgpu.GpuSettings;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;

/**
 * What is simulated: GPUs, and the tenants that use them. Immutable.
 *
 * @param gpus at least one
 * @param tenants the tenants of all GPUs
 * @param durationNs the simulated time; above 0
 * @param warmUpNs the time at the beginning that is not counted; 0 or more, below the duration
 * @param seed the seed of the random numbers
 */
public record Mix(List<Gpu> gpus, List<Member> tenants, long durationNs, long warmUpNs, long seed) {
  /** Copies the lists. */
  public Mix {
    gpus = List.copyOf(gpus);
    tenants = List.copyOf(tenants);
  }

  /**
   * A GPU.
   *
   * @param name its name for people
   * @param settings the settings of its scheduler
   * @param sliceNs its time slice while several tenants have work on it; above 0
   * @param changeNs how long nothing runs when it changes from one process to another; 0 or more
   */
  public record Gpu(String name, GpuSettings settings, long sliceNs, long changeNs) {}

  /**
   * A tenant: a virtual GPU and the programs under it.
   *
   * @param name its name for people; unique
   * @param gpu the index of its GPU in the list
   * @param request the granted terms
   * @param model how it is enforced
   * @param arrivals when its requests arrive
   * @param shape what its requests consist of
   * @param joinNs when it joins; 0 or more
   * @param leaveNs when it leaves; {@link Long#MAX_VALUE} means never
   */
  public record Member(
      String name,
      int gpu,
      VirtualGpuRequest request,
      GateModel model,
      Arrivals arrivals,
      RequestShape shape,
      long joinNs,
      long leaveNs) {}
}
