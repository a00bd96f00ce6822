/**
 * Real processes for benchmarks and system tests: separate nodes under {@code /tmp}, pools in child
 * JVMs, and one small C program on the CUDA driver API, bare or under a virtual GPU.
 */
@NullMarked
package dev.vgpu.bench.harness;

import org.jspecify.annotations.NullMarked;
