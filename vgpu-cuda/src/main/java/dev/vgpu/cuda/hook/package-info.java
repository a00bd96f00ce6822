/**
 * The seat's side of the hook: accepts the programs' connections, watches the programs, and tells
 * them when to run.
 */
@NullMarked
package dev.vgpu.cuda.hook;

import org.jspecify.annotations.NullMarked;
