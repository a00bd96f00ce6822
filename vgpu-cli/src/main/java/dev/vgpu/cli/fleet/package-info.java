/** The commands that simulate a fleet of GPUs. */
@NullMarked
package dev.vgpu.cli.fleet;

import org.jspecify.annotations.NullMarked;
