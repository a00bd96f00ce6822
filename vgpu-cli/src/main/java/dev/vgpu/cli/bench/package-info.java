/**
 * The commands that start a benchmark, the chaos suite, the soak test, or the GPU check as a
 * process.
 */
@NullMarked
package dev.vgpu.cli.bench;

import org.jspecify.annotations.NullMarked;
