package dev.vgpu.bench.demo.figure;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The demo's figures, computed from the measurements. Immutable. Percentages are of the device
 * unless a name says otherwise.
 */
public final class Figures {
  /** The window over which a share must hold. */
  static final long SHARE_WINDOW_NS = 5_000_000_000L;

  /** The highest accepted ratio of online p99 with vgpu to online p99 alone. */
  static final double LONGEST_P99_RATIO = 1.10;

  /** The least part of the remaining device time that the offline job must use. */
  static final double LEAST_OFFLINE_KEPT = 0.60;

  /** The highest accepted deviation of a share from the request, in percentage points. */
  static final double SHARE_TOLERANCE_POINTS = 1.0;

  private static final String CORPUS = "corpus";
  private static final String LARGE = "offline-75";
  private static final String SMALL = "offline-25";
  private static final double PERCENT = 100;

  private final DemoResults results;

  /** Takes the measurements. */
  public Figures(DemoResults results) {
    this.results = results;
  }

  /** The two tenants of a 75/25 phase, in percent of the time that the device was used. */
  record Pair(
      double large,
      double small,
      SlidingShare largeWindow,
      double largeOfTime,
      double smallOfTime,
      double utilisation,
      double itemsPerSecond) {
    /** {@return the larger tenant's worst window, in percent} */
    double worstLarge() {
      return PERCENT * largeWindow.worstFrom(0.75);
    }

    /** {@return how far the worst window is from 75, in percentage points} */
    double worstPoints() {
      return Math.abs(worstLarge() - 75);
    }
  }

  /** One of the six models. */
  record ModelFigures(
      SixModels.Model model,
      double heldInBurst,
      Latencies latencies,
      long memoryPeakBytes,
      long quotaBytes) {}

  /** {@return the measurements} */
  public DemoResults results() {
    return results;
  }

  double onlineP99(Phase phase) {
    return results.of(phase).latencies().percentileMs(99);
  }

  double offlinePerSecond(Phase phase) {
    return results.of(phase).itemsPerSecond(CORPUS);
  }

  double utilisationPercent(Phase phase) {
    return PERCENT * results.of(phase).utilisation();
  }

  long preemptions() {
    return results.of(Phase.VGPU).preemptions(CORPUS);
  }

  /** {@return online p99 with vgpu, as a multiple of alone} */
  double p99Ratio(Phase phase) {
    return onlineP99(phase) / onlineP99(Phase.ONLINE_ALONE);
  }

  /** {@return how many offline texts a second the online requests leave room for} */
  double offlineRoomPerSecond() {
    return offlinePerSecond(Phase.OFFLINE_ALONE)
        * (1 - results.of(Phase.ONLINE_ALONE).utilisation());
  }

  /** {@return the part of that room that the offline job used, as a fraction} */
  double offlineKept(Phase phase) {
    return offlinePerSecond(phase) / offlineRoomPerSecond();
  }

  Pair pair(Phase phase) {
    PhaseResult result = results.of(phase);
    int large = result.tenant(LARGE);
    int small = result.tenant(SMALL);
    return new Pair(
        PERCENT * result.shareOfUsed(large, 0, result.lengthNs()),
        PERCENT * result.shareOfUsed(small, 0, result.lengthNs()),
        result.slidingShare(large, SHARE_WINDOW_NS),
        PERCENT * result.shareOfTime(large),
        PERCENT * result.shareOfTime(small),
        PERCENT * result.utilisation(),
        result.itemsPerSecond(LARGE) + result.itemsPerSecond(SMALL));
  }

  /** {@return the larger deviation of the two 75/25 phases, in percentage points} */
  double worstSharePoints() {
    return Math.max(pair(Phase.FIXED_SHARE).worstPoints(), pair(Phase.BURST_SHARE).worstPoints());
  }

  List<ModelFigures> sixModels() {
    PhaseResult result = results.of(Phase.SIX_MODELS);
    long fromNs = burstFromNs();
    long toNs = burstToNs();
    return SixModels.MODELS.stream()
        .map(
            model -> {
              int tenant = result.tenant(model.name());
              PhaseSnapshot.Tenant measured = result.slices().get(0).tenants().get(tenant);
              return new ModelFigures(
                  model,
                  PERCENT * result.shareOfUsed(tenant, fromNs, toNs),
                  result.latencies(model.path()),
                  measured.memoryPeakBytes(),
                  measured.quotaBytes());
            })
        .toList();
  }

  /** {@return when the burst began, in nanoseconds since the measured window began} */
  public long burstFromNs() {
    return results.of(Phase.SIX_MODELS).slices().get(0).zeroNs() + results.timing().burstFromNs();
  }

  /** {@return when the burst's arrivals ended, likewise} */
  public long burstToNs() {
    return results.of(Phase.SIX_MODELS).slices().get(0).zeroNs() + results.timing().burstToNs();
  }

  /** {@return how many requests failed, in all phases} */
  long failedRequests() {
    return failures().values().stream().mapToLong(Long::longValue).sum();
  }

  /** {@return how many requests failed in all phases, by HTTP status; 0 means no answer} */
  Map<Integer, Long> failures() {
    Map<Integer, Long> failures = new TreeMap<>();
    for (Phase phase : Phase.values()) {
      results.of(phase).failures().forEach((code, count) -> failures.merge(code, count, Long::sum));
    }
    return failures;
  }
}
