/** Delivery of events to listeners. */
@NullMarked
package dev.vgpu.core.events;

import org.jspecify.annotations.NullMarked;
