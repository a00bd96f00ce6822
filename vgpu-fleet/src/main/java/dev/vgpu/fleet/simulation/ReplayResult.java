package dev.vgpu.fleet.simulation;

import dev.vgpu.request.PreemptionClass;
import java.util.List;
import java.util.Map;

/**
 * The results of a replay. Immutable.
 *
 * @param policy the name of the placement policy
 * @param allocatedPercent the mean allocated GPU time, in percent of all
 * @param fragmentedPercent the mean idle GPU time that a typical request could not use, in percent
 *     of all
 * @param started the number of jobs that started
 * @param gangs how many of these had several members
 * @param waiting the number of jobs that never started
 * @param refused the number of jobs with a member that fits no node, even an empty one
 * @param evictions how often a job was evicted for a more urgent one
 * @param waits the waiting times of jobs, by class
 * @param decisionTimes the durations of the queue's decisions
 * @param points the allocation over time
 */
public record ReplayResult(
    String policy,
    double allocatedPercent,
    double fragmentedPercent,
    int started,
    int gangs,
    int waiting,
    int refused,
    int evictions,
    Map<PreemptionClass, Waits> waits,
    DecisionTimes decisionTimes,
    List<Point> points) {
  /** Copies the collections. */
  public ReplayResult {
    waits = Map.copyOf(waits);
    points = List.copyOf(points);
  }

  /**
   * Waiting times, in seconds. Immutable.
   *
   * @param jobs the number of jobs
   * @param mean their mean
   * @param median their median
   * @param p99 their 99th percentile
   * @param most their maximum
   */
  public record Waits(int jobs, double mean, double median, double p99, double most) {}

  /**
   * The fleet at one moment. Immutable.
   *
   * @param timeS seconds since the first arrival
   * @param allocatedPercent the allocated GPU time, in percent of all
   * @param fragmentedPercent the idle GPU time that a typical request could not use, in percent of
   *     all
   */
  public record Point(double timeS, double allocatedPercent, double fragmentedPercent) {}
}
