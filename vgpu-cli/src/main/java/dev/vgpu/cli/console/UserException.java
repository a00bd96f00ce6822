package dev.vgpu.cli.console;

import java.io.IOException;
import java.nio.file.FileSystemException;
import org.jspecify.annotations.Nullable;

/**
 * An error that the user can correct. The message says what was wrong, then what to do. It is shown
 * without a stack trace, and the command exits with {@link #exitCode}, usually 1.
 */
public final class UserException extends Exception {
  private static final long serialVersionUID = 1L;

  private final int exitCode;

  /**
   * Creates one with exit code 1.
   *
   * @param message what was wrong, then what to do
   */
  public UserException(String message) {
    this(message, null);
  }

  /**
   * Creates one with a cause, which is shown if the user asks for details.
   *
   * @param message what was wrong, then what to do
   * @param cause the underlying exception, or null
   */
  public UserException(String message, @Nullable Throwable cause) {
    this(message, cause, ExitCodes.FAILED);
  }

  /**
   * Creates one with another exit code.
   *
   * @param message what was wrong, then what to do
   * @param cause the underlying exception, or null
   * @param exitCode one of {@link ExitCodes}
   */
  public UserException(String message, @Nullable Throwable cause, int exitCode) {
    super(message, cause);
    this.exitCode = exitCode;
  }

  /**
   * {@return why a file cannot be read or written, for the end of a message}
   *
   * @param e the failure; its message may be only the file's name
   */
  public static String reason(IOException e) {
    if (e instanceof FileSystemException failed && failed.getReason() != null) {
      return failed.getReason();
    }
    return switch (e.getClass().getSimpleName()) {
      case "AccessDeniedException" -> "permission denied";
      case "FileAlreadyExistsException" -> "a file of that name is in the way";
      case "NoSuchFileException" -> "there is no such file or directory";
      case "NotDirectoryException" -> "it is not a directory";
      case "MalformedInputException" -> "it is not text";
      default -> String.valueOf(e.getMessage());
    };
  }

  /** {@return the exit code of the command} */
  public int exitCode() {
    return exitCode;
  }
}
