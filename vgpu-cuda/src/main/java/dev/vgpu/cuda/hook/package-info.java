/**
 * The seat's side of the hook: it takes the programs' connections, watches them, and tells them
 * when to run.
 */
@NullMarked
package dev.vgpu.cuda.hook;

import org.jspecify.annotations.NullMarked;
