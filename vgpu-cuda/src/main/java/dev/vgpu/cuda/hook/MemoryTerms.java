package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.request.VirtualGpuRequest;

/** Changes a lease's quota while its processes allocate. */
final class MemoryTerms {
  private MemoryTerms() {}

  /**
   * Writes the terms of a lease's memory: each GPU has an account with the whole quota.
   *
   * @param adopted whether processes may be attached already: the number of accounts stays
   */
  static void begin(GrantPage grant, VirtualGpuRequest request, boolean adopted) {
    if (!adopted && request.gpuCount() > 1) {
      grant.memoryGpus(request.gpuCount());
    }
    grant.memoryLimit(limit(grant, request));
  }

  /** {@return the limit of each account} A seat before minor 8 made one account for all GPUs. */
  private static long limit(GrantPage grant, VirtualGpuRequest request) {
    long quota = request.memory().bytes();
    return grant.memoryGpus() == 0 ? quota * request.gpuCount() : quota;
  }

  /**
   * Grants another quota. Guarded by the lease's lock.
   *
   * @param request the new terms
   * @return false, and nothing is changed, if its processes hold more on a GPU
   */
  static boolean tryChange(GrantPage grant, SlotTable slots, VirtualGpuRequest request) {
    long limit = limit(grant, request);
    long before = grant.memoryLimit();
    if (slots.memory().mostUsedBytes() > limit) {
      return false;
    }
    grant.memoryLimit(limit);
    if (limit < before) {
      // A change that passed under the former limit may not have reached the word yet.
      slots.memory().touch();
      if (slots.memory().mostUsedBytes() > limit) {
        grant.memoryLimit(before);
        return false;
      }
    }
    return true;
  }
}
