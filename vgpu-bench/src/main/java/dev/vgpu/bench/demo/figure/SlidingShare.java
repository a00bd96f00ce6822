package dev.vgpu.bench.demo.figure;

import java.util.stream.LongStream;

/**
 * The smallest and largest part of the device's used time that a tenant had, over all windows of
 * one length. The values are exact: between two edges of use, the time within a sliding window is a
 * linear function. A quotient of two linear functions is monotonic, so the extremes lie where the
 * window begins or ends at an edge. Immutable.
 *
 * @param least as a fraction, 0 to 1
 * @param most as a fraction, 0 to 1
 */
record SlidingShare(double least, double most) {
  /**
   * {@return the extremes of one tenant's part of the time that the device was used}
   *
   * @param tenant when the tenant used it
   * @param all when any tenant used it
   * @param windowNs the window's length; a shorter phase is one window
   * @param fromNs where the first window begins
   * @param toNs where the last window ends
   */
  static SlidingShare ofUsed(BusyTime tenant, BusyTime all, long windowNs, long fromNs, long toNs) {
    long windowLength = Math.min(windowNs, toNs - fromNs);
    double least = 1;
    double most = 0;
    long[] starts =
        LongStream.concat(LongStream.of(tenant.edgesNs()), LongStream.of(all.edgesNs()))
            .flatMap(edge -> LongStream.of(edge, edge - windowLength))
            .filter(start -> start >= fromNs && start + windowLength <= toNs)
            .toArray();
    for (long start :
        LongStream.concat(LongStream.of(starts), ends(fromNs, toNs, windowLength)).toArray()) {
      long used = all.between(start, start + windowLength);
      double share = used == 0 ? 0 : tenant.between(start, start + windowLength) / (double) used;
      least = Math.min(least, share);
      most = Math.max(most, share);
    }
    return new SlidingShare(least, most);
  }

  /** {@return the larger deviation of the two extremes from the requested share, as a fraction} */
  double worstFrom(double asked) {
    return Math.abs(least - asked) > Math.abs(most - asked) ? least : most;
  }

  private static LongStream ends(long fromNs, long toNs, long windowLength) {
    return LongStream.of(fromNs, toNs - windowLength);
  }
}
