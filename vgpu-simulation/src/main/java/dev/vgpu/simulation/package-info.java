/** The scheduler and its tenants in virtual time, for property tests and the simulator. */
@NullMarked
package dev.vgpu.simulation;

import org.jspecify.annotations.NullMarked;
