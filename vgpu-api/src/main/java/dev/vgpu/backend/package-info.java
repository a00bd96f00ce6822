/**
 * Which backends a pool has, what each of them can do, and which of them it chooses for a request.
 */
@NullMarked
package dev.vgpu.backend;

import org.jspecify.annotations.NullMarked;
