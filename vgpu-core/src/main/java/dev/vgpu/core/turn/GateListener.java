package dev.vgpu.core.turn;

import dev.vgpu.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * Whom a gate tells what its calls do: what decides about its turns, or stands for that. Called
 * with the seat held; the seat is stepped afterwards.
 */
public interface GateListener {
  /** Somebody waits in front of the gate. */
  void wanted();

  /**
   * The last one inside has left, while the gate was shut or others wait; or nobody waits any more.
   */
  void drained();

  /** It is closed and the last one has left. Called once. */
  void ended();

  /**
   * Replaces the terms of its turns, or changes nothing.
   *
   * @param request what is granted from now on
   * @return why it cannot be, or null
   */
  @Nullable String tryResize(VirtualGpuRequest request);
}
