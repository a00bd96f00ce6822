package dev.vgpu.core.schedule;

/**
 * How much of what tenants say they used is true while several use the GPU together. A device that
 * gives slices of time to each lets a kernel's measured time run on while others have their slices,
 * so that the readings sum to more than the time that has passed. They are cut down alike, by what
 * they sum to over some time. Confined to the scheduler's owner.
 */
final class SliceScale {
  /** Over how long readings are summed, roughly; they come in lumps of about a millisecond. */
  private static final double MEMORY_NS = 50_000_000;

  private double timeNs;
  private double toldNs;

  /** By what to multiply what was told now. */
  double factor(int active, double passedNs, double usedNs) {
    if (active < 2) {
      timeNs = 0;
      toldNs = 0;
      return 1;
    }
    double keep = Math.max(0, 1 - passedNs / MEMORY_NS);
    timeNs = timeNs * keep + passedNs;
    toldNs = toldNs * keep + usedNs;
    return toldNs <= timeNs ? 1 : timeNs / toldNs;
  }
}
