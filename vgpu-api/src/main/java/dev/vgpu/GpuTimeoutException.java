package dev.vgpu;

/**
 * A call did not get its turn, or the memory of its budget, within the time that {@link
 * CallOptions} gave it. The call was not started. The caller can try again, or shed the load.
 */
public final class GpuTimeoutException extends VgpuException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one.
   *
   * @param message how long was waited, and for what
   */
  public GpuTimeoutException(String message) {
    super(message);
  }
}
