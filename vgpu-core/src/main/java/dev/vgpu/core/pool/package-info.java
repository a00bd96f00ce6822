/**
 * The front door: the pool that a caller opens, the virtual GPU that a caller holds, and the nodes
 * of this JVM that they belong to.
 */
@NullMarked
package dev.vgpu.core.pool;

import org.jspecify.annotations.NullMarked;
