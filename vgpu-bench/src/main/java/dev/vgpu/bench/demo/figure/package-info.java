/** What the demo measures, and what it makes of that: figures, text and JSON. */
@NullMarked
package dev.vgpu.bench.demo.figure;

import org.jspecify.annotations.NullMarked;
