/** The commands that start a benchmark, chaos, the soak test, or the GPU check as a process. */
@NullMarked
package dev.vgpu.bench.command;

import org.jspecify.annotations.NullMarked;
