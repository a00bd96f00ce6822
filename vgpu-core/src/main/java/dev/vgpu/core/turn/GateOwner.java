package dev.vgpu.core.turn;

import dev.vgpu.VgpuException;
import org.jspecify.annotations.Nullable;

/** What a gate tells the virtual GPU that it belongs to. Called without the seat held. */
public interface GateOwner {
  /** The gate was closed and the last call has left it. Called once. */
  void drained();

  /**
   * A {@code cancel()} did not do what it should.
   *
   * @param reason what went wrong
   * @param cause what it threw, or null
   */
  void cancelFailed(String reason, @Nullable Throwable cause);

  /**
   * Runs a {@code cancel()} on a thread of its own.
   *
   * @param cancel what to run
   */
  void runCancel(Runnable cancel);

  /**
   * {@return the refusal of a memory budget, with who holds the quota}
   *
   * @param message what was asked and what the quota can give
   */
  VgpuException refusal(String message);
}
