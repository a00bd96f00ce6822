/**
 * Reclaim: getting GPU memory back from less urgent tenants. {@link
 * dev.vgpu.core.reclaim.ReclaimPlanner} decides, as a state machine without clock, thread or GPU.
 * {@code MemoryReclaim} reads the GPUs and carries out the actions.
 *
 * <p>If free memory is below the low watermark, or recent growth leads there, reclaim climbs a
 * ladder: first for offline tenants, then, if that was not enough, for nearline tenants. Online
 * tenants are never touched. The steps are:
 *
 * <ol>
 *   <li>Ask all owners at once to free memory.
 *   <li>Suspend processes, one tenant after the other.
 *   <li>End the processes that could not be suspended, one tenant after the other.
 * </ol>
 *
 * <p>The tenant with the least work to lose is taken first; among equals, the tenant that holds the
 * most memory. Reclaim stops at any step as soon as the high watermark is free.
 *
 * <p>A tenant that was ended or suspended may come back once the high watermark has been free for
 * the hold-back time. A suspended tenant also waits until the high watermark stays free with its
 * memory back on the GPU. So a tenant is reclaimed and let back at most once in that time.
 */
@NullMarked
package dev.vgpu.core.reclaim;

import org.jspecify.annotations.NullMarked;
