/** The {@code vgpu} command. */
@NullMarked
package dev.vgpu.cli;

import org.jspecify.annotations.NullMarked;
