/**
 * The choice of a node for a request: one interface, several policies.
 *
 * <p>A policy assigns a cost to each possible change of a node's state. The least cost wins; among
 * equal costs, the first node. A cost depends on the two states alone and is cached, so a decision
 * computes only what has changed since the last decision for the same shape.
 */
@NullMarked
package dev.vgpu.fleet.placement;

import org.jspecify.annotations.NullMarked;
