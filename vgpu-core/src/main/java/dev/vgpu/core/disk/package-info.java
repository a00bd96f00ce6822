/**
 * What the processes of a node keep on disk: the run directory, the lock that only one of them
 * holds, the leases, and how a process is recognised.
 */
@NullMarked
package dev.vgpu.core.disk;

import org.jspecify.annotations.NullMarked;
