/**
 * Code that several modules' tests share: the seed of random tests, the reuse of a pid, and cycles
 * of classes.
 */
@NullMarked
package dev.vgpu.testing;

import org.jspecify.annotations.NullMarked;
