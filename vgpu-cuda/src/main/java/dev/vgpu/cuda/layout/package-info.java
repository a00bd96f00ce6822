/**
 * The layout that Java and C share: offsets in the pages of a lease, and names of environment
 * variables. Generated from the {@code .def} files that C includes.
 */
@NullMarked
package dev.vgpu.cuda.layout;

import org.jspecify.annotations.NullMarked;
