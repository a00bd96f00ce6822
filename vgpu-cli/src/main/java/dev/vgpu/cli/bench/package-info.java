/** The commands that start a benchmark, chaos, the soak, or the check of a GPU as a process. */
@NullMarked
package dev.vgpu.cli.bench;

import org.jspecify.annotations.NullMarked;
