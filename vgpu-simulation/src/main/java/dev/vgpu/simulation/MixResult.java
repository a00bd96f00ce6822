package dev.vgpu.simulation;

import java.util.List;

/**
 * The result of simulating a mix. Immutable.
 *
 * @param mix what was simulated
 * @param gpus the result of each GPU
 * @param tenants the result of each tenant
 * @param binNs the length of one point of a series
 */
public record MixResult(Mix mix, List<OfGpu> gpus, List<OfTenant> tenants, long binNs) {
  /** Copies the lists. */
  public MixResult {
    gpus = List.copyOf(gpus);
    tenants = List.copyOf(tenants);
  }

  /**
   * The result of one GPU.
   *
   * @param name its name for people
   * @param busyNs how long it worked
   * @param lostNs how long it was idle although a tenant could have used it: between turns, and
   *     while programs that wait for it had nothing launched
   * @param turns how often a gate was opened
   * @param switches how often it changed from one tenant's work to another's
   * @param preemptions how often a tenant lost its turn to a more urgent one
   * @param steps how often its scheduler was stepped
   * @param spansFromNs when the spans begin
   * @param spans which tenant had it when, at the beginning; at most some thousands
   */
  public record OfGpu(
      String name,
      long busyNs,
      double lostNs,
      long turns,
      long switches,
      long preemptions,
      long steps,
      long spansFromNs,
      List<Span> spans) {
    /** Copies the list. */
    public OfGpu {
      spans = List.copyOf(spans);
    }
  }

  /**
   * The work of one tenant without another's in between.
   *
   * @param tenant the tenant's index
   * @param fromNs its start
   * @param toNs its end
   */
  public record Span(int tenant, long fromNs, long toNs) {}

  /**
   * The result of one tenant.
   *
   * @param name its name for people
   * @param presentNs how long it was there
   * @param usableNs the same without what was lost between turns
   * @param usedNs how long the GPU worked for it
   * @param measuredNs how long the GPU worked for it as measured by its enforcement, which may
   *     include slices of others
   * @param entitledNs how long the GPU would have worked for it under an ideal division, into
   *     arbitrarily small parts, among the tenants with work at each moment. Time lost between
   *     turns does not count
   * @param worstWindow the largest difference between its use and that ideal in any window of one
   *     second, in points
   * @param worstWindowAtNs when that window begins; -1 if it was there for less than a window
   * @param requests the number of requests that arrived
   * @param answered the number of requests that were answered
   * @param kernels the number of kernels that ended
   * @param turns how often its gate was opened
   * @param preemptions how often it lost its turn to a more urgent tenant
   * @param latencies from a request's arrival to the end of its last kernel
   * @param series the percent of the GPU that it used, point by point
   * @param entitledSeries the percent that it was entitled to, point by point
   */
  public record OfTenant(
      String name,
      long presentNs,
      double usableNs,
      long usedNs,
      long measuredNs,
      double entitledNs,
      double worstWindow,
      long worstWindowAtNs,
      long requests,
      long answered,
      long kernels,
      long turns,
      long preemptions,
      LatencyHistogram latencies,
      List<Double> series,
      List<Double> entitledSeries) {
    /** Copies the lists. */
    public OfTenant {
      series = List.copyOf(series);
      entitledSeries = List.copyOf(entitledSeries);
    }

    /** {@return the percent of the GPU's time that it used while it was there} */
    public double heldPercent() {
      return usableNs <= 0 ? 0 : 100 * usedNs / usableNs;
    }

    /** {@return the percent that it was entitled to while it was there} */
    public double entitledPercent() {
      return usableNs <= 0 ? 0 : 100 * entitledNs / usableNs;
    }
  }

  /** {@return the seconds that were counted} */
  public double countedSeconds() {
    return (mix.durationNs() - mix.warmUpNs()) / 1e9;
  }
}
