/** Files for container runtimes. */
@NullMarked
package dev.vgpu.cli.container;

import org.jspecify.annotations.NullMarked;
