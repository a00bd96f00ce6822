package dev.vgpu.core.wire;

import org.jspecify.annotations.Nullable;

/** What another process sent, or what a file holds, makes no sense. */
public final class MalformedMessageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one.
   *
   * @param message what is wrong
   */
  public MalformedMessageException(String message) {
    this(message, null);
  }

  /**
   * Makes one.
   *
   * @param message what is wrong
   * @param cause what led to it, or null
   */
  public MalformedMessageException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
