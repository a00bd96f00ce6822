/** Help for a shell and for {@code man}. */
@NullMarked
package dev.vgpu.cli.help;

import org.jspecify.annotations.NullMarked;
