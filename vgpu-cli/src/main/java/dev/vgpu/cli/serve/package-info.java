/** The command that holds the seat and serves metrics and the dashboard. */
@NullMarked
package dev.vgpu.cli.serve;

import org.jspecify.annotations.NullMarked;
