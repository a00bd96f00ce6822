package dev.vgpu.core.seat;

import java.util.List;

/** Where the seat does what its clients ask for. */
final class SeatDesks implements AutoCloseable {
  private static final int ORDER_THREADS = 4;
  private static final int PREPARATION_THREADS = 8;
  private static final int CHANGE_THREADS = 16;

  /** One: whoever lists all there is without a pause has no more than a processor of the seat. */
  private static final int READING_THREADS = 1;

  /** For what is quick, and is done for a client in its order. */
  final Desk orders = new Desk("orders", ORDER_THREADS);

  /** For what makes ready for programs, or asks backends. */
  final Desk preparations = new Desk("preparations", PREPARATION_THREADS);

  /** For what suspends, resumes or moves, and may wait for tenants. */
  final Desk changes = new Desk("changes", CHANGE_THREADS);

  /** For what only reads, and grows with the number of leases, of events or of records. */
  final Desk readings = new Desk("readings", READING_THREADS);

  @Override
  public void close() {
    List.of(orders, preparations, changes, readings).forEach(Desk::close);
  }
}
