/**
 * What the processes of a node keep on disk: the run directory, the seat's lock, the leases, and
 * the identity of processes.
 */
@NullMarked
package dev.vgpu.core.disk;

import org.jspecify.annotations.NullMarked;
