package dev.vgpu.k8s.names;

/** A pod asks for what no GPU can give; the message says what was asked and what would fit. */
public final class PodRefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /**
   * Refuses.
   *
   * @param message what was asked and what would fit
   */
  public PodRefusedException(String message) {
    super(message);
  }
}
