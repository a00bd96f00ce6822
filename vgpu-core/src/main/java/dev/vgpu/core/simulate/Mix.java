package dev.vgpu.core.simulate;

import dev.vgpu.GpuSettings;
import dev.vgpu.VirtualGpuRequest;
import java.util.List;

/**
 * What is simulated: GPUs, and who wants what of them when. Immutable.
 *
 * @param gpus at least one
 * @param tenants of any GPU
 * @param durationNs how long; above 0
 * @param warmUpNs what is not counted at the beginning; 0 or more, below the duration
 * @param seed where chance begins
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
   * @param name what people call it
   * @param settings what its scheduler goes by
   * @param sliceNs what it gives a tenant at a time while others have work on it; above 0
   */
  public record Gpu(String name, GpuSettings settings, long sliceNs) {}

  /**
   * A tenant: a virtual GPU and the programs under it.
   *
   * @param name what people call it; no two have the same
   * @param gpu the number of its GPU in the list
   * @param request what it is granted
   * @param model how that is enforced
   * @param arrivals when its requests come
   * @param shape what they are made of
   * @param joinNs when it comes; 0 or more
   * @param leaveNs when it goes; {@link Long#MAX_VALUE}: never
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
