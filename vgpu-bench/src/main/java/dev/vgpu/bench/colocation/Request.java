package dev.vgpu.bench.colocation;

/**
 * A request to the online program. Immutable.
 *
 * @param dueNs when it arrives, from the start of its sequence
 * @param prefillNs GPU time for its prompt
 * @param decodeNs GPU time for its answer
 */
record Request(long dueNs, long prefillNs, long decodeNs) {
  /** {@return its GPU time} */
  long serviceNs() {
    return prefillNs + decodeNs;
  }
}
