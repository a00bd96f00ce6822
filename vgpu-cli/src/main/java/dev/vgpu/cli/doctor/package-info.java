/** What {@code vgpu doctor} looks at, and what it packs for a report. */
@NullMarked
package dev.vgpu.cli.doctor;

import org.jspecify.annotations.NullMarked;
