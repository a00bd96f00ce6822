/**
 * Gangs, the queue, reservations and preemption. Either all members of a gang are placed, or none.
 */
@NullMarked
package dev.vgpu.fleet.gang;

import org.jspecify.annotations.NullMarked;
