package dev.vgpu.nvml.mig.plan;

import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Optional;

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
   * {@return this profile with no other start; empty if it has no such one}
   *
   * @param start its first memory slice
   */
  public Optional<MigProfile> at(int start) {
    return starts.contains(start)
        ? Optional.of(
            new MigProfile(
                id,
                name,
                computeSlices,
                memorySlices,
                most,
                List.of(start),
                memory,
                multiprocessors))
        : Optional.empty();
  }

  /**
   * {@return whether an instance is large enough}
   *
   * @param least its memory, at least
   * @param computePercent percent of the GPU's compute slices, 0 to 100, at least
   * @param ofSlices how many compute slices the GPU has
   */
  public boolean isEnough(MemorySize least, int computePercent, int ofSlices) {
    return memory.bytes() >= least.bytes() && 100 * computeSlices >= computePercent * ofSlices;
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
