/** What fits on one GPU. The pool and the simulation use the same rule. */
@NullMarked
package dev.vgpu.core.admission;

import org.jspecify.annotations.NullMarked;
