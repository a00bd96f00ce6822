package dev.vgpu.nvml.mig.plan;

/**
 * What of a GPU is taken. Two GPUs of one geometry with the same occupancy offer the same.
 *
 * @param memoryMask the memory slices that are taken, as bits
 * @param computeSlices how many compute slices are taken
 * @param media whether an instance has the media engines
 */
public record MigOccupancy(int memoryMask, int computeSlices, boolean media) {
  /** Nothing is taken. */
  public static final MigOccupancy NONE = new MigOccupancy(0, 0, false);

  /**
   * {@return this with one more instance}
   *
   * @param profile its kind
   * @param start its first memory slice
   */
  public MigOccupancy with(MigProfile profile, int start) {
    return new MigOccupancy(
        memoryMask | profile.mask(start),
        computeSlices + profile.computeSlices(),
        media || profile.hasMedia());
  }
}
