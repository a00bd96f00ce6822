/**
 * How the processes of a node agree on the one that decides: holding the seat, serving clients,
 * being a client, and taking the seat over when its holder dies.
 */
@NullMarked
package dev.vgpu.core.seat;

import org.jspecify.annotations.NullMarked;
