package dev.vgpu.core.simulate;

import java.util.List;

/**
 * What came of a mix. Immutable.
 *
 * @param mix what was simulated
 * @param gpus one for each GPU
 * @param tenants one for each tenant
 * @param binNs the length of a point of a series
 */
public record MixResult(Mix mix, List<OfGpu> gpus, List<OfTenant> tenants, long binNs) {
  /** Copies the lists. */
  public MixResult {
    gpus = List.copyOf(gpus);
    tenants = List.copyOf(tenants);
  }

  /**
   * What came of a GPU.
   *
   * @param name what people call it
   * @param busyNs how long it worked
   * @param lostNs how long it was idle although somebody might have used it: between turns, and
   *     while programs that wait for it had nothing launched
   * @param turns how often a gate was opened
   * @param switches how often it went from one tenant's work to another's
   * @param preemptions how often a tenant lost its turn to a more urgent one
   * @param steps how often its scheduler was stepped
   * @param spansFromNs where the spans begin
   * @param spans who had it when, for the first moments; no more than some thousands
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
   * One tenant's work, without another's in between.
   *
   * @param tenant the tenant's number
   * @param fromNs since when
   * @param toNs until when
   */
  public record Span(int tenant, long fromNs, long toNs) {}

  /**
   * What came of a tenant.
   *
   * @param name what people call it
   * @param presentNs how long it was there
   * @param usableNs the same without what was lost between turns
   * @param usedNs how long the GPU worked for it
   * @param measuredNs how long it worked by the measure that its enforcement takes, which may count
   *     another's slices too
   * @param entitledNs how long it would have, had the GPU been divided ideally, into parts as small
   *     as one likes, among those with work at each moment. What is lost between turns does not
   *     count
   * @param worstWindow the largest distance of what it held from that in any window of one second,
   *     in points
   * @param worstWindowAtNs where that window begins; -1 if it was not there for as long as a window
   * @param requests how many requests came
   * @param answered how many were answered
   * @param kernels how many kernels ended
   * @param turns how often its gate was opened
   * @param preemptions how often it lost its turn to a more urgent tenant
   * @param latencies from a request's arrival to the end of its last kernel
   * @param series the percent of the GPU that it held, point by point
   * @param entitledSeries the same of what it was entitled to
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

    /** {@return the percent of the GPU's time that it held while it was there} */
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
