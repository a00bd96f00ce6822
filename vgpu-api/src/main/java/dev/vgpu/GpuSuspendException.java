package dev.vgpu;

import org.jspecify.annotations.Nullable;

/**
 * The work under a virtual GPU cannot be suspended, or cannot be resumed yet. The message has the
 * reason and the remedy. The state is as before, unless the message says otherwise. A later attempt
 * may succeed.
 */
public class GpuSuspendException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception without a cause.
   *
   * @param message the refusal, and its reason
   */
  public GpuSuspendException(String message) {
    super(message);
  }

  /**
   * Creates an exception.
   *
   * @param message the refusal, and its reason
   * @param cause the failure
   */
  public GpuSuspendException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
