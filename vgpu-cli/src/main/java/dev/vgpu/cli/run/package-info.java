/** The commands that put programs under virtual GPUs, suspend them, and let them go on. */
@NullMarked
package dev.vgpu.cli.run;

import org.jspecify.annotations.NullMarked;
