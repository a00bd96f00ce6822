/** The commands that run programs under virtual GPUs, suspend them, and resume them. */
@NullMarked
package dev.vgpu.cli.run;

import org.jspecify.annotations.NullMarked;
