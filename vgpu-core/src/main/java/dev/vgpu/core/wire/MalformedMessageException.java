package dev.vgpu.core.wire;

import org.jspecify.annotations.Nullable;

/** A message of another process, or the content of a file, makes no sense. */
public final class MalformedMessageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception without a cause.
   *
   * @param message what is wrong
   */
  public MalformedMessageException(String message) {
    this(message, null);
  }

  /**
   * Creates an exception.
   *
   * @param message what is wrong
   * @param cause the cause, or null
   */
  public MalformedMessageException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
