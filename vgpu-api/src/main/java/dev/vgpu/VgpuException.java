package dev.vgpu;

import org.jspecify.annotations.Nullable;

/**
 * Something that the caller did not get wrong and yet could not be had. The subtypes say what the
 * caller can do about it.
 */
public class VgpuException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one without a cause.
   *
   * @param message what failed, then {@code name=value} pairs
   */
  public VgpuException(String message) {
    super(message);
  }

  /**
   * Makes one.
   *
   * @param message what failed, then {@code name=value} pairs
   * @param cause what led to it, or null
   */
  public VgpuException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
