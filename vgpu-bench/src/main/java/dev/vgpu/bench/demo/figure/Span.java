package dev.vgpu.bench.demo.figure;

/**
 * A tenant's call on the device. Immutable.
 *
 * @param tenant the tenant's index, from 0
 * @param startNs when it began
 * @param endNs when it ended
 */
public record Span(int tenant, long startNs, long endNs) {}
