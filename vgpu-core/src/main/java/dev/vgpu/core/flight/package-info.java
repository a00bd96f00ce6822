/**
 * What happens in a pool, as events of the JDK Flight Recorder: a recording of the process that has
 * the seat, or of one that listens, shows each {@link dev.vgpu.GpuEvent} with named fields and
 * units under the category {@code vgpu}, and once a second what each virtual GPU has used. Nothing
 * of the recorder is loaded before the first event, and where no recording is on, nothing is
 * recorded.
 */
@NullMarked
package dev.vgpu.core.flight;

import org.jspecify.annotations.NullMarked;
