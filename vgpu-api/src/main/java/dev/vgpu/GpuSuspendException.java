package dev.vgpu;

import org.jspecify.annotations.Nullable;

/**
 * What is under a virtual GPU cannot be suspended, or cannot go on yet. The message says why and
 * what helps. It is as it was before, unless the message says otherwise; trying again later may
 * work.
 */
public class GpuSuspendException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one.
   *
   * @param message what cannot be done, and why
   */
  public GpuSuspendException(String message) {
    super(message);
  }

  /**
   * Makes one.
   *
   * @param message what cannot be done, and why
   * @param cause what went wrong
   */
  public GpuSuspendException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
