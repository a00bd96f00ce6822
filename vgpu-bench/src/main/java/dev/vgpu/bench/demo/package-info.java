/** The demo: a sample server and a load generator as processes, phases, and measurements. */
@NullMarked
package dev.vgpu.bench.demo;

import org.jspecify.annotations.NullMarked;
