/** What several packages of the core share. */
@NullMarked
package dev.vgpu.core;

import org.jspecify.annotations.NullMarked;
