package dev.vgpu;

import org.jspecify.annotations.Nullable;

/** A failure that is not the caller's mistake. The subtypes say what the caller can do about it. */
public class VgpuException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception without a cause.
   *
   * @param message the failure, then {@code name=value} pairs
   */
  public VgpuException(String message) {
    super(message);
  }

  /**
   * Creates an exception.
   *
   * @param message the failure, then {@code name=value} pairs
   * @param cause its cause, or null
   */
  public VgpuException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
