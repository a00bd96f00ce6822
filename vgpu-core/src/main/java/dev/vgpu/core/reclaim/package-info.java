/**
 * Getting memory of a GPU back from less urgent tenants. {@link
 * dev.vgpu.core.reclaim.ReclaimPlanner} decides, as a state machine without clock, thread or GPU;
 * {@code MemoryReclaim} reads the GPUs and carries the steps out.
 *
 * <p>Below the low watermark of free memory, or if recent growth leads there, reclaim climbs a
 * ladder. It does so for the offline tenants first, then, if that was not enough, for the nearline
 * ones. It asks all owners at once. Then it suspends processes. At last it ends those that could
 * not be suspended, one tenant after the other. The tenant is taken first that loses the least
 * work, then the one that holds the most. It stops at any step as soon as the high watermark is
 * free. Online tenants are never touched.
 *
 * <p>A tenant whose memory was taken may come back when the high watermark has been free for the
 * hold-back time, and, if it is suspended, when its memory fits above the high watermark. So the
 * same tenant is never reclaimed and let back more often than once in that time.
 */
@NullMarked
package dev.vgpu.core.reclaim;

import org.jspecify.annotations.NullMarked;
