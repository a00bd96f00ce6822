/**
 * The cluster as plain values, and the one class that owns all placements.
 *
 * <p>A node's free capacity is an immutable {@link dev.vgpu.fleet.model.NodeState}. Equal nodes
 * share one state object, so a decision looks at each distinct state once, however many nodes there
 * are. {@link dev.vgpu.fleet.model.Fleet} owns the nodes; placing and releasing are exact inverses.
 */
@NullMarked
package dev.vgpu.fleet.model;

import org.jspecify.annotations.NullMarked;
