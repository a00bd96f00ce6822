package dev.vgpu;

/**
 * Two processes of a node use different versions of the seat's protocol or of the shared region.
 * The message names both. Stop the older process, or start with another run directory.
 */
public final class ProtocolMismatchException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the exception.
   *
   * @param message the two versions, and where they met
   */
  public ProtocolMismatchException(String message) {
    super(message);
  }
}
