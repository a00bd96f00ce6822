/** What random tests draw from, and how a number of a process is used again. */
@NullMarked
package dev.vgpu.testing;

import org.jspecify.annotations.NullMarked;
