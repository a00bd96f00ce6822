package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.placement.Fragments;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Collects the results of a replay. Confined to one thread. */
final class ReplayTally {
  private static final int MOST_POINTS = 400;

  private final String policy;
  private final Fleet fleet;
  private final Fragments fragments;
  private final Map<PreemptionClass, List<Double>> waits = new EnumMap<>(PreemptionClass.class);
  private final Set<String> seen = new HashSet<>();
  private final DecisionTimes times = new DecisionTimes();
  private List<ReplayResult.Point> points = new ArrayList<>();
  private int every = 1;
  private int step;
  private double nowS;
  private double usedArea;
  private double fragmentArea;
  private double startS = Double.NaN;
  private int gangs;
  private int evictions;
  private int refused;

  ReplayTally(String policy, Fleet fleet, Workload workload) {
    this.policy = policy;
    this.fleet = fleet;
    this.fragments = new Fragments(workload);
  }

  void advance(double toS) {
    if (Double.isNaN(startS)) {
      startS = toS;
      nowS = toS;
    }
    double used = 1 - (double) fleet.idlePercent() / Math.max(1, fleet.capacityPercent());
    usedArea += used * (toS - nowS);
    if (step++ % every == 0) {
      double fragmented = fragments.of(fleet) / Math.max(1, fleet.capacityPercent());
      points.add(new ReplayResult.Point(nowS - startS, 100 * used, 100 * fragmented));
      thin();
    }
    double last = points.get(points.size() - 1).fragmentedPercent();
    fragmentArea += last * (toS - nowS);
    nowS = toS;
  }

  /** Keeps every second point once there are too many. */
  private void thin() {
    if (points.size() >= 2 * MOST_POINTS) {
      List<ReplayResult.Point> kept = new ArrayList<>();
      for (int i = 0; i < points.size(); i += 2) {
        kept.add(points.get(i));
      }
      points = kept;
      every *= 2;
    }
  }

  void decided(long ns) {
    times.add(ns);
  }

  void started(Job job, double atS) {
    if (seen.add(job.name())) {
      waits
          .computeIfAbsent(job.members().get(0).preemptionClass(), key -> new ArrayList<>())
          .add(atS - job.arrivalS());
      gangs += job.isGang() ? 1 : 0;
    }
  }

  void evicted() {
    evictions++;
  }

  void refused() {
    refused++;
  }

  ReplayResult result(int stillWaiting) {
    Map<PreemptionClass, ReplayResult.Waits> byClass = new EnumMap<>(PreemptionClass.class);
    waits.forEach((key, list) -> byClass.put(key, waits(list)));
    double span = Math.max(1e-9, nowS - startS);
    return new ReplayResult(
        policy,
        100 * usedArea / span,
        fragmentArea / span,
        seen.size(),
        gangs,
        stillWaiting,
        refused,
        evictions,
        byClass,
        times,
        points);
  }

  private static ReplayResult.Waits waits(List<Double> list) {
    double[] sorted = list.stream().mapToDouble(wait -> wait).sorted().toArray();
    int last = sorted.length - 1;
    return new ReplayResult.Waits(
        sorted.length,
        Arrays.stream(sorted).average().orElse(0),
        sorted[(int) (0.5 * last)],
        sorted[(int) (0.99 * last)],
        sorted[last]);
  }
}
