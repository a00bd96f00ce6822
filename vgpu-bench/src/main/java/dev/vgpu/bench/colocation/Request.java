package dev.vgpu.bench.colocation;

/**
 * A request to the online program. Immutable.
 *
 * @param dueNs when it arrives, from the start of what it belongs to
 * @param prefillNs GPU time that its prompt takes
 * @param decodeNs GPU time that its answer takes
 */
record Request(long dueNs, long prefillNs, long decodeNs) {
  /** {@return the GPU time that it takes} */
  long serviceNs() {
    return prefillNs + decodeNs;
  }
}
