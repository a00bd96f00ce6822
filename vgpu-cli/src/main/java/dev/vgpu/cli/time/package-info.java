/** The command's only access to the clock, and its only way to wait. */
@NullMarked
package dev.vgpu.cli.time;

import org.jspecify.annotations.NullMarked;
