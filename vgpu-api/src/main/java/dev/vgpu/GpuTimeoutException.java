package dev.vgpu;

/**
 * A call did not get its turn, or the memory of its budget, within the timeout of its {@link
 * CallOptions}. The call was not started. The caller can try again, or shed the load.
 */
public final class GpuTimeoutException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the exception.
   *
   * @param message how long the call waited, and for what
   */
  public GpuTimeoutException(String message) {
    super(message);
  }
}
