/** The commands that show GPUs and virtual GPUs, and change nothing. */
@NullMarked
package dev.vgpu.cli.watch;

import org.jspecify.annotations.NullMarked;
