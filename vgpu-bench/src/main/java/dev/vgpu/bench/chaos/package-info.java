/**
 * The chaos suite: random programs under virtual GPUs of a separate node, and random failures.
 * After each step the GPU's own accounts are compared with the ledgers.
 */
@NullMarked
package dev.vgpu.bench.chaos;

import org.jspecify.annotations.NullMarked;
