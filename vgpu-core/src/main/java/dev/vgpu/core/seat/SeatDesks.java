package dev.vgpu.core.seat;

import java.util.List;

/** Where the seat does what its clients ask for. */
final class SeatDesks implements AutoCloseable {
  private static final int ORDER_THREADS = 4;
  private static final int PREPARATION_THREADS = 8;
  private static final int CHANGE_THREADS = 16;

  /** For what is quick, and is done for a client in its order. */
  final Desk orders = new Desk("orders", ORDER_THREADS);

  /** For what makes ready for programs, or asks backends. */
  final Desk preparations = new Desk("preparations", PREPARATION_THREADS);

  /** For what suspends, resumes or moves, and may wait for tenants. */
  final Desk changes = new Desk("changes", CHANGE_THREADS);

  @Override
  public void close() {
    List.of(orders, preparations, changes).forEach(Desk::close);
  }
}
