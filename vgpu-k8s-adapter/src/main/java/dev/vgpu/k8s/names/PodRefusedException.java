package dev.vgpu.k8s.names;

/**
 * Thrown if a pod requests what no GPU can give. The message says what was requested and what would
 * fit.
 */
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
