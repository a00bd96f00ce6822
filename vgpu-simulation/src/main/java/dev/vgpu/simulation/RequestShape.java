package dev.vgpu.simulation;

/**
 * What each request of a tenant consists of: a chain of kernels. Immutable.
 *
 * @param leastKernels the least number of kernels; above 0. A trace may state it for each request
 * @param mostKernels the largest number; the number is uniformly distributed
 * @param kernelTime the length of each kernel
 * @param sync the program waits for the GPU after this many kernels, and after each request; 0
 *     means that it never waits, and keeps launching
 * @param hostNs how long the program takes after a wait before it launches again
 */
public record RequestShape(
    int leastKernels, int mostKernels, KernelTime kernelTime, int sync, long hostNs) {}
