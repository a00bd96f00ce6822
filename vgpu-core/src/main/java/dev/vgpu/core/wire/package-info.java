/**
 * Messages between the seat and its clients: the connection, the form of a message, and how each
 * value is written into one.
 */
@NullMarked
package dev.vgpu.core.wire;

import org.jspecify.annotations.NullMarked;
