package dev.vgpu.samples.inference;

import org.jspecify.annotations.Nullable;

/** A model was closed before it could answer. Another server may answer, or this one shortly. */
final class ModelClosedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ModelClosedException(String what, @Nullable Throwable cause) {
    super(what + " is closed", cause);
  }
}
