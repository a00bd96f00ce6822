/** vgpu embedded in another program's JVM: loaded, used, closed and unloaded. */
@NullMarked
package dev.vgpu.cli.embed;

import org.jspecify.annotations.NullMarked;
