/** Files that describe what is simulated, and what people see of the result. */
@NullMarked
package dev.vgpu.cli.simulation;

import org.jspecify.annotations.NullMarked;
