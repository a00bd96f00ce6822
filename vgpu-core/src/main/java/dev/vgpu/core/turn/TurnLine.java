package dev.vgpu.core.turn;

import dev.vgpu.request.VirtualGpuRequest;

/**
 * Where a {@link TenantGate} queues for its turns: at one GPU's scheduler, or at those of all GPUs
 * of a gang. Called with the seat of the first GPU held.
 */
interface TurnLine {
  /** It has work. */
  void wanted();

  /** None of its work runs any more, or it has given up waiting. */
  void drained();

  /** Its terms have changed. */
  void resize(VirtualGpuRequest request);

  /** It is taken over from another process; this shuts its gate. */
  void adopt();

  /** A part was added that has used this much before, which counts as paid. */
  void paid(long usedNs);

  /** It has ended. Called once. */
  void remove();
}
