package dev.vgpu.files;

import java.io.IOException;

/** Another user can change a file, or what its path leads to. The message says where and how. */
public final class UntrustedFileException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the exception.
   *
   * @param message the part of the path, and why
   */
  UntrustedFileException(String message) {
    super(message);
  }
}
