package dev.vgpu.bench.demo.figure;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The demo's figures as one JSON object. Names end in their unit; shares and utilisation are
 * percentages.
 */
public final class DemoJson {
  private static final double ROUND = 1000;

  private DemoJson() {}

  /**
   * {@return the figures}
   *
   * @param results the measurements
   */
  public static ObjectNode of(DemoResults results) {
    Figures figures = new Figures(results);
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    for (Phase phase : new Phase[] {Phase.ONLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU}) {
      addOnline(json, phase, results.of(phase).latencies());
    }
    addOffline(json, figures);
    addUtilisation(json, figures);
    addShares(json, figures);
    addSixModels(json, figures);
    addLoad(json, results);
    Target.of(figures)
        .forEach(
            target ->
                json.withArray("targets")
                    .addObject()
                    .put("title", target.title())
                    .put("measured", target.value())
                    .put("asked", target.asked())
                    .put("met", target.isMet()));
    return json.put("failed_requests", figures.failedRequests());
  }

  private static void addOnline(ObjectNode json, Phase phase, Latencies latencies) {
    String prefix = "online_" + shortName(phase);
    put(json, prefix + "_p50_ms", latencies.percentileMs(50));
    put(json, prefix + "_p99_ms", latencies.percentileMs(99));
    put(json, prefix + "_max_ms", latencies.maxMs());
    json.put(prefix + "_requests", latencies.count() + latencies.failed());
    json.put(prefix + "_failed", latencies.failed());
  }

  private static void addOffline(ObjectNode json, Figures figures) {
    put(json, "online_uncontrolled_p99_ratio", figures.p99Ratio(Phase.UNCONTROLLED));
    put(json, "online_vgpu_p99_ratio", figures.p99Ratio(Phase.VGPU));
    for (Phase phase : new Phase[] {Phase.OFFLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU}) {
      put(json, "offline_" + shortName(phase) + "_per_s", figures.offlinePerSecond(phase));
    }
    put(json, "offline_room_per_s", figures.offlineRoomPerSecond());
    put(json, "offline_uncontrolled_kept_percent", 100 * figures.offlineKept(Phase.UNCONTROLLED));
    put(json, "offline_vgpu_kept_percent", 100 * figures.offlineKept(Phase.VGPU));
    json.put("offline_vgpu_preemptions", figures.preemptions());
  }

  private static void addUtilisation(ObjectNode json, Figures figures) {
    put(json, "utilisation", figures.utilisationPercent(Phase.VGPU));
    for (Phase phase : Phase.values()) {
      put(json, phase.id() + "_utilisation_percent", figures.utilisationPercent(phase));
    }
  }

  private static void addShares(ObjectNode json, Figures figures) {
    put(json, "share_75", figures.pair(Phase.FIXED_SHARE).large());
    put(json, "share_25", figures.pair(Phase.FIXED_SHARE).small());
    for (Phase phase : new Phase[] {Phase.FIXED_SHARE, Phase.BURST_SHARE}) {
      Figures.Pair pair = figures.pair(phase);
      put(json, phase.id() + "_75_percent", pair.large());
      put(json, phase.id() + "_25_percent", pair.small());
      put(json, phase.id() + "_75_least_5s_percent", 100 * pair.largeWindow().least());
      put(json, phase.id() + "_75_most_5s_percent", 100 * pair.largeWindow().most());
      put(json, phase.id() + "_75_of_time_percent", pair.largeOfTime());
      put(json, phase.id() + "_25_of_time_percent", pair.smallOfTime());
      put(json, phase.id() + "_per_s", pair.itemsPerSecond());
    }
    put(json, "share_worst_5s_points", figures.worstSharePoints());
  }

  private static void addSixModels(ObjectNode json, Figures figures) {
    for (Figures.ModelFigures model : figures.sixModels()) {
      ObjectNode row =
          json.withArray("six_models")
              .addObject()
              .put("name", model.model().name())
              .put("has_burst", model.model().hasBurst())
              .put("share_asked_percent", model.model().percent());
      put(row, "share_held_in_burst_percent", model.heldInBurst());
      row.put("requests", model.latencies().count() + model.latencies().failed());
      row.put("failed", model.latencies().failed());
      put(row, "p50_ms", model.latencies().percentileMs(50));
      put(row, "p99_ms", model.latencies().percentileMs(99));
      row.put("memory_peak_bytes", model.memoryPeakBytes());
      row.put("memory_quota_bytes", model.quotaBytes());
    }
  }

  private static void addLoad(ObjectNode json, DemoResults results) {
    json.put("trace", results.replay().description());
    json.put("load_asked_percent", results.loadPercent());
    put(json, "load_speed_factor", results.replay().speed());
    put(json, "request_cost_mean_ms", results.replay().meanCostNs() / 1e6);
    put(json, "request_send_lag_p99_ms", results.of(Phase.VGPU).sendLag().percentileMs(99));
    Disturbance disturbance = results.disturbance();
    put(json, "other_programs_cpu_percent", disturbance.otherPercent());
    put(json, "stolen_cpu_percent", disturbance.stolenPercent());
    json.put("machine_was_busy", disturbance.isLarge());
  }

  private static String shortName(Phase phase) {
    return switch (phase) {
      case ONLINE_ALONE, OFFLINE_ALONE -> "alone";
      default -> phase.id();
    };
  }

  /** Puts a value rounded to a thousandth, or null if nothing was measured. */
  public static void put(ObjectNode json, String name, double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) {
      json.putNull(name);
    } else {
      json.put(name, Math.round(value * ROUND) / ROUND);
    }
  }
}
