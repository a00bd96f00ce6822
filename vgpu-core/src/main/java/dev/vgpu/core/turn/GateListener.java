package dev.vgpu.core.turn;

import dev.vgpu.request.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * Receives what the calls of a gate do: the object that decides about its turns, or its stand-in.
 * Called with the seat held; the seat is stepped afterwards.
 */
public interface GateListener {
  /** A call waits in front of the gate. */
  void wanted();

  /** The last call has left while the gate was shut or others wait, or no call waits any more. */
  void drained();

  /** The gate is closed and the last call has left. Called once. */
  void ended();

  /**
   * Replaces the terms of its turns, or changes nothing.
   *
   * @param request the new terms
   * @return why they cannot be granted, or null
   */
  @Nullable String tryResize(VirtualGpuRequest request);
}
