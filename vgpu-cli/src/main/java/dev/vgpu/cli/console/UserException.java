package dev.vgpu.cli.console;

import org.jspecify.annotations.Nullable;

/**
 * Something that the user can put right. The message says what was wrong, and then what to do; it
 * is shown without a stack trace, and the command ends with its exit code, mostly 1.
 */
public final class UserException extends Exception {
  private static final long serialVersionUID = 1L;

  private final int exitCode;

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
    this(message, cause, ExitCodes.FAILED);
  }

  /**
   * Creates one that ends the command with another exit code.
   *
   * @param message what was wrong, then what to do
   * @param cause what happened underneath, or null
   * @param exitCode one of {@link ExitCodes}
   */
  public UserException(String message, @Nullable Throwable cause, int exitCode) {
    super(message, cause);
    this.exitCode = exitCode;
  }

  /** {@return what the command ends with} */
  public int exitCode() {
    return exitCode;
  }
}
