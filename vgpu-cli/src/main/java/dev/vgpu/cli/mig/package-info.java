/** The commands that list and plan MIG instances, and switch the MIG mode. */
@NullMarked
package dev.vgpu.cli.mig;

import org.jspecify.annotations.NullMarked;
