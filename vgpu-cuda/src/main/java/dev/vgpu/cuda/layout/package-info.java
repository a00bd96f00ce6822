/**
 * What Java and C agree on: the offsets in the pages of a lease, and names of environment
 * variables. Made from the {@code .def} files that C includes.
 */
@NullMarked
package dev.vgpu.cuda.layout;

import org.jspecify.annotations.NullMarked;
