package dev.vgpu.simulation.trace;

/**
 * One request of a trace. Immutable.
 *
 * @param arrivalNs nanoseconds since the trace's first request
 * @param contextTokens the length of its prompt, in tokens of the traced model; 0 or more
 * @param generatedTokens the length of its answer; 0 or more
 */
public record TraceRequest(long arrivalNs, int contextTokens, int generatedTokens) {}
