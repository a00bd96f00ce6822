/**
 * The events of a pool as events of the JDK Flight Recorder. A recording of the process with the
 * seat, or of one that listens, shows each {@link dev.vgpu.GpuEvent} with named fields and units
 * under the category {@code vgpu}, and once a second the use of each virtual GPU. Nothing of the
 * recorder is loaded before the first event. Without a recording nothing is recorded.
 */
@NullMarked
package dev.vgpu.core.flight;

import org.jspecify.annotations.NullMarked;
