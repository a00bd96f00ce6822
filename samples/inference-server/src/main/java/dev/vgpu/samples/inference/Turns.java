package dev.vgpu.samples.inference;

import dev.vgpu.CallOptions;
import dev.vgpu.PreemptibleCall;

/**
 * Where a model's calls run. In a server of your own this is {@code gpu::call} and needs no type;
 * the demo also has one that shares nothing, to compare with, and one that notes when calls ran.
 */
@FunctionalInterface
interface Turns {
  /**
   * Runs a call when its turn comes.
   *
   * @param call the work
   * @param options its memory, and how long it may wait
   * @return its result
   */
  <T> T call(PreemptibleCall<T> call, CallOptions options) throws Exception;
}
