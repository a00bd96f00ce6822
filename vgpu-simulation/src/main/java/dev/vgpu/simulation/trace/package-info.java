/** Recorded requests of a service, as arrivals for simulations and for the demo. */
@NullMarked
package dev.vgpu.simulation.trace;

import org.jspecify.annotations.NullMarked;
