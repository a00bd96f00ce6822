/**
 * What the steps of the check stand on: the machine's place and its tools, the node under test, and
 * the findings.
 */
@NullMarked
package dev.vgpu.bench.gpucheck.machine;

import org.jspecify.annotations.NullMarked;
