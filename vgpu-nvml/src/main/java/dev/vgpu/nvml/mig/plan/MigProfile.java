package dev.vgpu.nvml.mig.plan;

import dev.vgpu.MemorySize;
import java.util.List;

/**
 * A profile of GPU instances. Immutable.
 *
 * @param id its number in NVML and {@code nvidia-smi}
 * @param name its usual name, for example {@code 3g.40gb}
 * @param computeSlices how many compute slices an instance takes
 * @param memorySlices how many memory slices an instance takes
 * @param most how many instances a GPU can have
 * @param starts the memory slices at which an instance can begin, ascending
 * @param memory an instance's memory
 * @param multiprocessors an instance's SMs
 */
public record MigProfile(
    int id,
    String name,
    int computeSlices,
    int memorySlices,
    int most,
    List<Integer> starts,
    MemorySize memory,
    int multiprocessors) {
  private static final String MEDIA = "+me";

  /** Copies the list. */
  public MigProfile {
    starts = starts.stream().sorted().toList();
  }

  /** {@return whether it has the media engines, which only one instance of a GPU can have} */
  public boolean hasMedia() {
    return name.contains(MEDIA);
  }

  /**
   * {@return the memory slices that an instance takes, as bits}
   *
   * @param start its first memory slice
   */
  int mask(int start) {
    return ((1 << memorySlices) - 1) << start;
  }
}
