/** The emulated driver as a jar brings it along. */
@NullMarked
package dev.vgpu.emulator;

import org.jspecify.annotations.NullMarked;
