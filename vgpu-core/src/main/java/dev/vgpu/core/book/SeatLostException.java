package dev.vgpu.core.book;

/** The process that decides is gone, or has given the seat up: the request goes to the next one. */
public final class SeatLostException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Makes one that says which process is gone. */
  public SeatLostException(String message) {
    super(message);
  }
}
