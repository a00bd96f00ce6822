/** Who gets the GPU next: pure state machines, stepped with the time as an argument. */
@NullMarked
package dev.vgpu.core.schedule;

import org.jspecify.annotations.NullMarked;
