/** The emulated driver, packed in a jar. */
@NullMarked
package dev.vgpu.emulator;

import org.jspecify.annotations.NullMarked;
