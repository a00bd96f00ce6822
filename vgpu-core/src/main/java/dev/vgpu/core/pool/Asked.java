package dev.vgpu.core.pool;

import dev.vgpu.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * A request and who made it.
 *
 * @param request what is asked
 * @param pool through which pool; what is granted is closed with it
 * @param creationSite where in the caller's code; null when leaks are not tracked
 */
record Asked(VirtualGpuRequest request, NodePool pool, @Nullable Throwable creationSite) {}
