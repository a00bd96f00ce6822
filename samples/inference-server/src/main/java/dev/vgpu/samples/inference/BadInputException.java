package dev.vgpu.samples.inference;

/** A client's input cannot be used; the message is for the client. */
final class BadInputException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  BadInputException(String message) {
    super(message);
  }
}
