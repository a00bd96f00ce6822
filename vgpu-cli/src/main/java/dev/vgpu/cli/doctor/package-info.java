/** The checks of {@code vgpu doctor}, and its bundle for a report. */
@NullMarked
package dev.vgpu.cli.doctor;

import org.jspecify.annotations.NullMarked;
