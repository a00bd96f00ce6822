package dev.vgpu.fleet.simulation;

/**
 * What a policy made of a trace. Immutable.
 *
 * @param policy its name
 * @param allocatedPercent GPU time that was given away, of all
 * @param asked how many requests came
 * @param placed how many of them were placed
 * @param severalAsked how many of them need several GPUs
 * @param severalPlaced how many of these were placed
 * @param decisionNs how long each decision took
 */
public record Outcome(
    String policy,
    double allocatedPercent,
    int asked,
    int placed,
    int severalAsked,
    int severalPlaced,
    DecisionTimes decisionNs) {}
