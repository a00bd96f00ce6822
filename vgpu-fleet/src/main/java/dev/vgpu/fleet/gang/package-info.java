/**
 * Gangs, waiting, reservations and preemption: a gang is placed with all its members or with none.
 */
@NullMarked
package dev.vgpu.fleet.gang;

import org.jspecify.annotations.NullMarked;
