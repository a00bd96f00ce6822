package dev.vgpu;

/**
 * Two processes of a node speak different versions: of the seat's protocol, or of the shared
 * region. The message names both. Stop the older one, or start with another run directory.
 */
public final class ProtocolMismatchException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one.
   *
   * @param message which versions met, and where
   */
  public ProtocolMismatchException(String message) {
    super(message);
  }
}
