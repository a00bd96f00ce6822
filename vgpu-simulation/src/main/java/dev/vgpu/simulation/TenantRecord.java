package dev.vgpu.simulation;

import java.util.ArrayList;
import java.util.List;

/** What a {@link ShareRecorder} records of one tenant. Not thread-safe. */
final class TenantRecord {
  final Mix.Member member;
  final int index;
  boolean present;

  /** Whether it always has work while it is there. */
  boolean endless;

  /** The work that an ideal GPU still has to do for it. */
  double backlogNs;

  long joinedNs;
  long usedNs;
  double entitledNs;

  /** How long it was there, without what was lost between turns. */
  double usableNs;

  long preemptions;
  double worst;
  long worstAtNs = -1;

  /** Counts of the current step. */
  long stepUsedNs;

  double stepEntitledNs;
  double stepUsableNs;

  /** Counts of the current point of the series. */
  private long pointUsedNs;

  private double pointEntitledNs;
  final List<Double> series = new ArrayList<>();
  final List<Double> entitledSeries = new ArrayList<>();
  private final long[] used;
  private final double[] entitled;
  private long windowUsedNs;
  private double windowEntitledNs;
  private int steps;

  TenantRecord(Mix.Member member, int index, int stepsOfWindow) {
    this.member = member;
    this.index = index;
    this.used = new long[stepsOfWindow];
    this.entitled = new double[stepsOfWindow];
  }

  /** Ends a step. */
  void endStep(long nowNs, long stepNs) {
    addStep();
    pointUsedNs += stepUsedNs;
    pointEntitledNs += stepEntitledNs;
    if (present && joinedNs <= nowNs - stepNs) {
      int slot = steps % used.length;
      windowUsedNs += stepUsedNs - used[slot];
      windowEntitledNs += stepEntitledNs - entitled[slot];
      used[slot] = stepUsedNs;
      entitled[slot] = stepEntitledNs;
      steps++;
      double points = 100 * Math.abs(windowUsedNs - windowEntitledNs) / (stepNs * used.length);
      if (steps >= used.length && (worstAtNs < 0 || points > worst)) {
        worst = points;
        worstAtNs = nowNs - stepNs * used.length;
      }
    }
  }

  void addStep() {
    usedNs += stepUsedNs;
    entitledNs += stepEntitledNs;
    usableNs += stepUsableNs;
  }

  void clearStep() {
    stepUsedNs = 0;
    stepEntitledNs = 0;
    stepUsableNs = 0;
  }

  void endPoint(long pointNs) {
    series.add(100.0 * pointUsedNs / pointNs);
    entitledSeries.add(100.0 * pointEntitledNs / pointNs);
    pointUsedNs = 0;
    pointEntitledNs = 0;
  }

  /** Discards what was counted until now. */
  void startCounting(long nowNs) {
    joinedNs = Math.max(joinedNs, nowNs);
    clearStep();
    preemptions = 0;
  }
}
