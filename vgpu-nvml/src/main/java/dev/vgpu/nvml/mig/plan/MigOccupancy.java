package dev.vgpu.nvml.mig.plan;

/**
 * What is taken of a GPU. GPUs with equal geometry and occupancy offer the same places.
 *
 * @param memoryMask the memory slices that are taken, as bits
 * @param computeSlices how many compute slices are taken
 * @param media whether an instance has the media engines
 */
public record MigOccupancy(int memoryMask, int computeSlices, boolean media) {
  /** Nothing is taken. */
  public static final MigOccupancy NONE = new MigOccupancy(0, 0, false);

  /**
   * {@return this occupancy with one more instance}
   *
   * @param profile its profile
   * @param start its first memory slice
   */
  public MigOccupancy with(MigProfile profile, int start) {
    return new MigOccupancy(
        memoryMask | profile.mask(start),
        computeSlices + profile.computeSlices(),
        media || profile.hasMedia());
  }
}
