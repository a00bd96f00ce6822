/** Shell completion and manual pages. */
@NullMarked
package dev.vgpu.cli.help;

import org.jspecify.annotations.NullMarked;
