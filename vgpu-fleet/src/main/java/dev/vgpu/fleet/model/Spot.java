package dev.vgpu.fleet.model;

/**
 * The place that a policy chooses for a request. Immutable.
 *
 * @param node the node's number
 * @param slot where on the node it begins, see {@link NodeState#nextSlot}
 */
public record Spot(int node, int slot) {}
