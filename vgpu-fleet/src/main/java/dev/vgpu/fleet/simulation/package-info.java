/** The same decisions over a trace in virtual time, with figures. */
@NullMarked
package dev.vgpu.fleet.simulation;

import org.jspecify.annotations.NullMarked;
