/** What the command runs on: the machine, and the source checkout if there is one. */
@NullMarked
package dev.vgpu.cli.machine;

import org.jspecify.annotations.NullMarked;
