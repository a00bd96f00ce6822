/**
 * The events of a pool as JDK Flight Recorder events. Each {@link dev.vgpu.watch.GpuEvent} appears
 * under the category {@code vgpu} with named fields and units, as does the usage of each virtual
 * GPU, once a second. Record the process that holds the seat, or one that listens for events. The
 * recorder is not loaded before the first event. Without a recording, nothing is recorded.
 */
@NullMarked
package dev.vgpu.core.flight;

import org.jspecify.annotations.NullMarked;
