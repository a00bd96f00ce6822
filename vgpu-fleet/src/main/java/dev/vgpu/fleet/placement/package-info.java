/**
 * The choice of a node for a request: one interface, several policies.
 *
 * <p>A policy gives each possible change of a node's state a cost; the least cost wins, and of
 * equal ones the first node. Costs depend on the two states alone and are remembered, so a decision
 * computes only the changes since the last one of its shape.
 */
@NullMarked
package dev.vgpu.fleet.placement;

import org.jspecify.annotations.NullMarked;
