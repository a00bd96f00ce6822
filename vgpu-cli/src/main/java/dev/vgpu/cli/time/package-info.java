/** The one place of the command that reads the clock and waits. */
@NullMarked
package dev.vgpu.cli.time;

import org.jspecify.annotations.NullMarked;
