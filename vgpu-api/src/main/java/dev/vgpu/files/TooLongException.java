package dev.vgpu.files;

import java.io.IOException;

/** A file is longer than it may be, or has no end. */
public final class TooLongException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates one.
   *
   * @param message which file, and how long it may be
   */
  TooLongException(String message) {
    super(message);
  }
}
