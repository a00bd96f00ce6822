package dev.vgpu.samples.inference;

import dev.vgpu.CallOptions;
import dev.vgpu.PreemptibleCall;

/**
 * Runs a model's calls. In your own server this is {@code gpu::call} and needs no type. The demo
 * also has an implementation without sharing, to compare with, and one that records when calls ran.
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
