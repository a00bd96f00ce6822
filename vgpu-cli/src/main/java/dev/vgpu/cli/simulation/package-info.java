/** Files that describe simulations, and the presentation of results. */
@NullMarked
package dev.vgpu.cli.simulation;

import org.jspecify.annotations.NullMarked;
