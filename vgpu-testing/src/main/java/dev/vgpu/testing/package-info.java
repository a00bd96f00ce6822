/**
 * What tests of several modules share: what random tests draw from, how a number of a process is
 * used again, and which classes need each other.
 */
@NullMarked
package dev.vgpu.testing;

import org.jspecify.annotations.NullMarked;
