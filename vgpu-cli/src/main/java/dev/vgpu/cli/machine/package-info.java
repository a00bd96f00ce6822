/** The machine that the command runs on, and the source checkout if there is one. */
@NullMarked
package dev.vgpu.cli.machine;

import org.jspecify.annotations.NullMarked;
