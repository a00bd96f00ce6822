/**
 * Tells container runtimes about virtual GPUs. Only the command and the node role of vgpu use this
 * package.
 */
@NullMarked
package dev.vgpu.cdi;

import org.jspecify.annotations.NullMarked;
