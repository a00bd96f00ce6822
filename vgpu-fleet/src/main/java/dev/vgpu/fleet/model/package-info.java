/**
 * The cluster as plain values, and the class that owns all placements.
 *
 * <p>The free capacity of a node is an immutable {@link dev.vgpu.fleet.model.NodeState}. Equal
 * nodes share one state object, so a decision evaluates each distinct state once, however many
 * nodes there are. {@link dev.vgpu.fleet.model.Fleet} owns the nodes. Releasing a placement
 * restores the capacity exactly.
 */
@NullMarked
package dev.vgpu.fleet.model;

import org.jspecify.annotations.NullMarked;
