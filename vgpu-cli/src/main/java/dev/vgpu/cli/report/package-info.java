/** Reports: self-contained HTML files, and charts. */
@NullMarked
package dev.vgpu.cli.report;

import org.jspecify.annotations.NullMarked;
