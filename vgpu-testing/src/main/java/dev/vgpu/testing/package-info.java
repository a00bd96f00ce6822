/**
 * Code that several modules' tests share: the seed of random tests, the reuse of a pid, cycles of
 * classes, the seat's messages, and what a call costs.
 */
@NullMarked
package dev.vgpu.testing;

import org.jspecify.annotations.NullMarked;
