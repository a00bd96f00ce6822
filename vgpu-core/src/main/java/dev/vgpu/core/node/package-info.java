/**
 * A node as one JVM takes part in it: its GPUs, its leases, and the authority that decides about
 * them. That authority is this JVM or the process that holds the seat.
 */
@NullMarked
package dev.vgpu.core.node;

import org.jspecify.annotations.NullMarked;
