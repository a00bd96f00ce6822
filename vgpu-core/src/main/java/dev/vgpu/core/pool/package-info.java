/**
 * The entry point: the pool that a caller opens, the virtual GPU that a caller holds, and the nodes
 * of this JVM behind them.
 */
@NullMarked
package dev.vgpu.core.pool;

import org.jspecify.annotations.NullMarked;
