/** The page that Prometheus reads, for programs that have no meters of their own. */
@NullMarked
package dev.vgpu.cli.metrics;

import org.jspecify.annotations.NullMarked;
