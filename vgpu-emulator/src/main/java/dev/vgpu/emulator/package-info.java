/** The emulated GPU driver, packed in a jar. */
@NullMarked
package dev.vgpu.emulator;

import org.jspecify.annotations.NullMarked;
