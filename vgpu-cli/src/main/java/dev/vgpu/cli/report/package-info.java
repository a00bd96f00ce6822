/** The demo's report: one self-contained HTML file. */
@NullMarked
package dev.vgpu.cli.report;

import org.jspecify.annotations.NullMarked;
