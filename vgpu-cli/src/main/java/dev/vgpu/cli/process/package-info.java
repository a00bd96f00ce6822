/** Other processes: finding programs, and forwarding signals to them. */
@NullMarked
package dev.vgpu.cli.process;

import org.jspecify.annotations.NullMarked;
