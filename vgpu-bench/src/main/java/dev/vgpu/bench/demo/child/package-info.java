/** The processes that the demo starts, and ends. */
@NullMarked
package dev.vgpu.bench.demo.child;

import org.jspecify.annotations.NullMarked;
