package dev.vgpu.core.disk;

/** The deciding process is gone or has given the seat up. The request goes to the next holder. */
public final class SeatLostException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Creates an exception with a message that names the process. */
  public SeatLostException(String message) {
    super(message);
  }

  /** {@return the exception for a request that arrives while this process gives the seat up} */
  public static SeatLostException givenUp() {
    return new SeatLostException("this process has given the seat up");
  }
}
