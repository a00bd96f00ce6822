/** What random tests draw from. */
@NullMarked
package dev.vgpu.testing;

import org.jspecify.annotations.NullMarked;
