/** The machine on which the command runs, and the source checkout if there is one. */
@NullMarked
package dev.vgpu.cli.machine;

import org.jspecify.annotations.NullMarked;
