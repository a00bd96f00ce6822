package dev.vgpu.fleet.simulation;

/**
 * The results of a policy on a trace. Immutable.
 *
 * @param policy the policy's name
 * @param allocatedPercent the allocated GPU time, in percent of all
 * @param asked the number of requests
 * @param placed how many of them were placed
 * @param severalAsked the number of requests for several GPUs
 * @param severalPlaced how many of these were placed
 * @param decisionNs the durations of the decisions
 */
public record Outcome(
    String policy,
    double allocatedPercent,
    int asked,
    int placed,
    int severalAsked,
    int severalPlaced,
    DecisionTimes decisionNs) {}
