package dev.vgpu;

import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A driver refused a request or failed. The caller can read the driver's own code and act on it.
 */
public final class GpuDriverException extends VgpuException {
  private static final long serialVersionUID = 1L;

  private final @Nullable Integer code;

  /**
   * Creates an exception with the driver's code.
   *
   * @param message the failure
   * @param code the driver's own code
   */
  public GpuDriverException(String message, int code) {
    super(message + " code=" + code);
    this.code = code;
  }

  /**
   * Creates an exception without a code, because the driver gave none.
   *
   * @param message the failure
   * @param cause its cause, or null
   */
  public GpuDriverException(String message, @Nullable Throwable cause) {
    super(message, cause);
    this.code = null;
  }

  /** {@return the driver's own code, if it gave one} */
  public OptionalInt code() {
    return code == null ? OptionalInt.empty() : OptionalInt.of(code);
  }
}
