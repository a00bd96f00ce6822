package dev.vgpu.core.simulate;

/**
 * What each of a tenant's requests is made of: a chain of kernels. Immutable.
 *
 * @param leastKernels how many kernels at least; above 0. A trace may say it for each request
 * @param mostKernels how many at most; the number is equally distributed
 * @param kernelTime how long each runs
 * @param sync after so many kernels the program waits for the GPU, and after each request; 0: it
 *     never waits, and launches on and on
 * @param hostNs how long the program needs after it has waited, before it launches again
 */
public record RequestShape(
    int leastKernels, int mostKernels, KernelTime kernelTime, int sync, long hostNs) {}
