package dev.vgpu.cuda.hook;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.cuda.pages.GrantPage;

/** Changes a lease's quota while its processes allocate. */
final class MemoryTerms {
  private MemoryTerms() {}

  /** {@return the limit of the one account for all GPUs} Usage is not split by GPU. */
  static long limit(VirtualGpuRequest request) {
    return request.memory().bytes() * request.gpuCount();
  }

  /**
   * Grants another quota. Guarded by the lease's lock.
   *
   * @param request the new terms
   * @return false, and nothing is changed, if its processes hold more
   */
  static boolean tryChange(GrantPage grant, SlotTable slots, VirtualGpuRequest request) {
    long limit = limit(request);
    long before = grant.memoryLimit();
    if (slots.memoryUsed() > limit) {
      return false;
    }
    grant.memoryLimit(limit);
    if (limit < before) {
      // A change that passed under the former limit may not have reached the word yet.
      slots.touchMemory();
      if (slots.memoryUsed() > limit) {
        grant.memoryLimit(before);
        return false;
      }
    }
    return true;
  }
}
