package dev.vgpu.k8s.names;

/** Thrown if no GPU can give what a pod requests; the message says what would fit. */
public final class PodRefusedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /**
   * Creates one.
   *
   * @param message what was requested and what would fit
   */
  public PodRefusedException(String message) {
    super(message);
  }
}
