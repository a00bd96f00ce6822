package dev.vgpu.core.simulate;

import java.util.ArrayList;
import java.util.List;

/** What a {@link ShareRecorder} keeps of one tenant. Not thread-safe. */
final class TenantRecord {
  final Mix.Member member;
  final int index;
  boolean present;

  /** Whether it always has work while it is there. */
  boolean endless;

  /** The work that an ideal GPU would still have to do for it. */
  double backlogNs;

  long joinedNs;
  long usedNs;
  double entitledNs;
  long preemptions;
  double worst;
  long worstAtNs = -1;

  /** Of the step that is not over. */
  long stepUsedNs;

  double stepEntitledNs;

  /** Of the point of the series that is not over. */
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

  /** A step is over. */
  void endStep(long nowNs, long stepNs) {
    usedNs += stepUsedNs;
    entitledNs += stepEntitledNs;
    pointUsedNs += stepUsedNs;
    pointEntitledNs += stepEntitledNs;
    if (present && joinedNs <= nowNs - stepNs) {
      int slot = steps % used.length;
      windowUsedNs += stepUsedNs - used[slot];
      windowEntitledNs += stepEntitledNs - entitled[slot];
      used[slot] = stepUsedNs;
      entitled[slot] = stepEntitledNs;
      steps++;
    }
    stepUsedNs = 0;
    stepEntitledNs = 0;
  }

  /**
   * Looks at the window that has just ended.
   *
   * @param part what part of the time to which anyone was entitled was used by anyone: what was
   *     lost between the turns is nobody's share
   */
  void endWindow(double part, long nowNs, long windowNs) {
    if (present && steps >= used.length) {
      double points = 100 * Math.abs(windowUsedNs - part * windowEntitledNs) / windowNs;
      if (worstAtNs < 0 || points > worst) {
        worst = points;
        worstAtNs = nowNs - windowNs;
      }
    }
  }

  void endPoint(long pointNs) {
    series.add(100.0 * pointUsedNs / pointNs);
    entitledSeries.add(100.0 * pointEntitledNs / pointNs);
    pointUsedNs = 0;
    pointEntitledNs = 0;
  }

  /** What happened until now is not counted. */
  void startCounting(long nowNs) {
    joinedNs = Math.max(joinedNs, nowNs);
    stepUsedNs = 0;
    stepEntitledNs = 0;
    preemptions = 0;
  }
}
