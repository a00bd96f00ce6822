/**
 * Messages between the seat and its clients: the connection, the message format, and the encoding
 * of each kind of value.
 */
@NullMarked
package dev.vgpu.core.wire;

import org.jspecify.annotations.NullMarked;
