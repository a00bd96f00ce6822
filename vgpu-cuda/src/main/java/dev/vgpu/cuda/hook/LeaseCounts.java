package dev.vgpu.cuda.hook;

/**
 * Counters of a lease's processes, as of the last successful reading.
 *
 * @param launches kernels and graphs
 * @param denied allocations refused for the quota
 * @param passedThrough calls that the hook does not handle
 * @param copyNs time on the copy engines
 */
record LeaseCounts(long launches, long denied, long passedThrough, long copyNs) {
  static final LeaseCounts NONE = new LeaseCounts(0, 0, 0, 0);

  /** Reads them again; the copy time never falls. */
  LeaseCounts next(SlotTable slots) {
    return new LeaseCounts(
        slots.launches(), slots.denied(), slots.passedThrough(), Math.max(copyNs, slots.copyNs()));
  }
}
