package dev.vgpu.core.turn;

import dev.vgpu.VirtualGpuRequest;

/**
 * Where a {@link TenantGate} stands in line for its turns: at one GPU's scheduler, or at those of
 * all GPUs of a gang. Called with the seat of the first GPU held.
 */
interface TurnLine {
  /** It has work. */
  void wanted();

  /** Nothing of it runs any more, or it has given up waiting. */
  void drained();

  /** It holds other terms from now on. */
  void resize(VirtualGpuRequest request);

  /** It is taken over from another process; its gate is shut by this. */
  void adopt();

  /** A part was added to it that used this much before, which is paid. */
  void paid(long usedNs);

  /** It has ended. Called once. */
  void remove();
}
