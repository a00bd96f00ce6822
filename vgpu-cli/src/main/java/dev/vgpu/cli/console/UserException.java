package dev.vgpu.cli.console;

import org.jspecify.annotations.Nullable;

/**
 * Something that the user can put right. The message says what was wrong, and then what to do; it
 * is shown without a stack trace, and the command ends with exit code 1.
 */
public final class UserException extends Exception {
  private static final long serialVersionUID = 1L;

  /**
   * Creates one.
   *
   * @param message what was wrong, then what to do
   */
  public UserException(String message) {
    this(message, null);
  }

  /**
   * Creates one with the exception behind it, which is shown to those who ask for details.
   *
   * @param message what was wrong, then what to do
   * @param cause what happened underneath
   */
  public UserException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
