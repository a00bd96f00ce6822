/** vgpu as a guest in somebody else's JVM: loaded, used, closed and let go again. */
@NullMarked
package dev.vgpu.cli.embed;

import org.jspecify.annotations.NullMarked;
