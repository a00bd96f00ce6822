package dev.vgpu.core.turn;

import dev.vgpu.VgpuException;
import org.jspecify.annotations.Nullable;

/** The virtual GPU that owns a gate. Called by the gate, without the seat held. */
public interface GateOwner {
  /** The gate was closed and the last call has left it. Called once. */
  void drained();

  /**
   * A {@code cancel()} failed or hung.
   *
   * @param reason what went wrong
   * @param cause what it threw, or null
   */
  void cancelFailed(String reason, @Nullable Throwable cause);

  /**
   * Runs a {@code cancel()} on a thread of its own.
   *
   * @param cancel the action to run
   */
  void runCancel(Runnable cancel);

  /**
   * {@return the exception that refuses a memory budget, with the holders of the quota}
   *
   * @param message what was asked for, and what the quota can give
   */
  VgpuException refusal(String message);
}
