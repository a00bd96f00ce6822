/**
 * How the processes of a node meet: the run directory, the lock that makes one of them the seat's
 * holder, the leases on disk, and the messages between them.
 */
@NullMarked
package dev.vgpu.core.seat;

import org.jspecify.annotations.NullMarked;
