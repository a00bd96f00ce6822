package dev.vgpu.nvml.mig.plan;

import dev.vgpu.MemorySize;
import java.util.List;

/**
 * A kind of GPU instance. Immutable.
 *
 * @param id the profile id that NVML and {@code nvidia-smi} give it
 * @param name what people call it, for example {@code 3g.40gb}
 * @param computeSlices how many compute slices it takes
 * @param memorySlices how many memory slices it takes
 * @param most how many there can be on a GPU
 * @param starts the memory slices at which one can begin, in rising order
 * @param memory the memory that it has
 * @param multiprocessors the SMs that it has
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

  /** {@return whether it has the media engines, which one instance of a GPU can have} */
  public boolean hasMedia() {
    return name.contains(MEDIA);
  }

  /**
   * {@return the memory slices that one at a place takes, as bits}
   *
   * @param start its first memory slice
   */
  int mask(int start) {
    return ((1 << memorySlices) - 1) << start;
  }
}
