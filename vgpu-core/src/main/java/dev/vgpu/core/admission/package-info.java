/** What fits on one GPU: the one rule that the pool and the simulation both go by. */
@NullMarked
package dev.vgpu.core.admission;

import org.jspecify.annotations.NullMarked;
