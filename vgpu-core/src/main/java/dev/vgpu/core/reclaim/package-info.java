/**
 * Getting memory of a GPU back from less urgent tenants, as a state machine without clock, thread
 * or GPU.
 *
 * <p>Below the low watermark of free memory, or if the growth of the last moments leads there, the
 * ladder is climbed, for the offline tenants first and then, if that was not enough, for the
 * nearline ones: owners are asked, all at once; then processes are suspended, and at last those are
 * ended that could not be, one tenant after the other. The tenant is taken first that loses the
 * least work, then the one that holds the most. It stops at any step as soon as the high watermark
 * is free. Online tenants are never touched.
 *
 * <p>A tenant whose memory was taken may come back when the high watermark has been free for the
 * hold-back time, and, if it is suspended, when its memory fits above the high watermark. So the
 * same tenant is never reclaimed and let back more often than once in that time.
 */
@NullMarked
package dev.vgpu.core.reclaim;

import org.jspecify.annotations.NullMarked;
