package dev.vgpu.core.disk;

/** The process that decides is gone, or has given the seat up: the request goes to the next one. */
public final class SeatLostException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Makes one that says which process is gone. */
  public SeatLostException(String message) {
    super(message);
  }

  /** {@return one for a request that met a process as it gave the seat up} */
  public static SeatLostException givenUp() {
    return new SeatLostException("this process has given the seat up");
  }
}
