package dev.vgpu.samples.inference;

import org.jspecify.annotations.Nullable;

/** A model ended before it could answer; another server, or this one in a moment, may. */
final class ModelClosedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ModelClosedException(String what, @Nullable Throwable cause) {
    super(what + " is closed", cause);
  }
}
