/** The commands that look at MIG instances, plan them, and switch the mode. */
@NullMarked
package dev.vgpu.cli.mig;

import org.jspecify.annotations.NullMarked;
