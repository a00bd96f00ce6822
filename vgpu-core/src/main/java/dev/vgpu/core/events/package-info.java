/** Telling listeners what happens on a node. */
@NullMarked
package dev.vgpu.core.events;

import org.jspecify.annotations.NullMarked;
