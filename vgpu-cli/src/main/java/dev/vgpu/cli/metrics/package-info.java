/** The page that Prometheus scrapes, for programs without meters of their own. */
@NullMarked
package dev.vgpu.cli.metrics;

import org.jspecify.annotations.NullMarked;
