/** The steps of the check. Each looks at one thing and writes its findings at once. */
@NullMarked
package dev.vgpu.bench.gpucheck.step;

import org.jspecify.annotations.NullMarked;
