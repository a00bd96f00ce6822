/** The requests that the demo sends to its server. */
@NullMarked
package dev.vgpu.bench.demo.load;

import org.jspecify.annotations.NullMarked;
