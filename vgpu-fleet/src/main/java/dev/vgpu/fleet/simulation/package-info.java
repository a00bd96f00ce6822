/** Simulations: the same decisions over a trace in virtual time, with results. */
@NullMarked
package dev.vgpu.fleet.simulation;

import org.jspecify.annotations.NullMarked;
