/** Other processes, as the command starts them, sends them signals and waits for them. */
@NullMarked
package dev.vgpu.cli.process;

import org.jspecify.annotations.NullMarked;
