/** Turns for calls in this JVM. */
@NullMarked
package dev.vgpu.core.turn;

import org.jspecify.annotations.NullMarked;
