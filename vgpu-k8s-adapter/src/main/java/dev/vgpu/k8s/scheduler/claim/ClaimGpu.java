package dev.vgpu.k8s.scheduler.claim;

import java.util.OptionalLong;

/**
 * A GPU of a {@link ClaimTrial}. Amounts may become negative, if more is planned than there is.
 * Confined to one thread while they change.
 */
final class ClaimGpu {
  final boolean isTainted;
  final long memoryBytes;
  long share;
  long memory;
  long heldShare;
  long heldMemory;

  ClaimGpu(long share, long memory, boolean isTainted) {
    this.share = share;
    this.memory = memory;
    this.memoryBytes = memory;
    this.isTainted = isTainted;
  }

  /** {@return one that has as much as either of two that are new} */
  ClaimGpu orLarger(ClaimGpu other) {
    return new ClaimGpu(
        Math.max(share, other.share), Math.max(memory, other.memory), isTainted && other.isTainted);
  }

  long of(OptionalLong memory) {
    return memory.orElse(memoryBytes);
  }

  /** {@return how many claims that ask this fit} */
  long room(ClaimNeed.Ask ask) {
    return room(ask, share, memory);
  }

  /** {@return how many would if this much were free} */
  long room(ClaimNeed.Ask ask, long freeShare, long freeMemory) {
    if (isTainted && !ask.isTolerant()) {
      return 0;
    }
    long byMemory = freeMemory / Math.max(1, of(ask.memory()));
    return Math.max(0, Math.min(freeShare / ask.share(), byMemory));
  }

  boolean isUnheldRoom(ClaimNeed.Ask ask) {
    return room(ask, share - heldShare, memory - heldMemory) > 0;
  }
}
