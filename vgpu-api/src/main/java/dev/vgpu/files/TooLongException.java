package dev.vgpu.files;

import java.io.IOException;

/** A file is longer than allowed, or endless. */
public final class TooLongException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the exception.
   *
   * @param message the file and the allowed length
   */
  TooLongException(String message) {
    super(message);
  }
}
