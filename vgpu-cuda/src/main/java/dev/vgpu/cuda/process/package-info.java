/**
 * What is known of other processes: whether they are alive, what they have mapped, and whether a
 * program can be hooked.
 */
@NullMarked
package dev.vgpu.cuda.process;

import org.jspecify.annotations.NullMarked;
