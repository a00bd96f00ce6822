package dev.vgpu.fleet.simulation;

import dev.vgpu.PreemptionClass;
import java.util.List;
import java.util.Map;

/**
 * What a replay came to. Immutable.
 *
 * @param policy the placement policy's name
 * @param allocatedPercent GPU time given away, of all, over the replay
 * @param fragmentedPercent idle GPU time that the usual request could not use, of all
 * @param started how many jobs started
 * @param gangs how many of them had several members
 * @param waiting how many never started
 * @param refused how many could not even be met by an empty fleet
 * @param evictions how often a job had to go for a more urgent one
 * @param waits how long jobs waited, by class
 * @param decisionTimes how long each look at the line took
 * @param points how allocation went
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
   * @param jobs how many jobs
   * @param mean their mean
   * @param median their median
   * @param p99 what 99 of 100 did not exceed
   * @param most the longest
   */
  public record Waits(int jobs, double mean, double median, double p99, double most) {}

  /**
   * The fleet at one time. Immutable.
   *
   * @param timeS seconds since the first job came
   * @param allocatedPercent GPU time given away, of all
   * @param fragmentedPercent idle GPU time that the usual request could not use, of all
   */
  public record Point(double timeS, double allocatedPercent, double fragmentedPercent) {}
}
