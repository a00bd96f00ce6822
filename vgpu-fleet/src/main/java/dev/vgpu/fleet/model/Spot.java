package dev.vgpu.fleet.model;

/**
 * Where a policy wants a request. Immutable.
 *
 * @param node the node's number
 * @param slot where on the node it begins, see {@link NodeState#nextSlot}
 */
public record Spot(int node, int slot) {}
