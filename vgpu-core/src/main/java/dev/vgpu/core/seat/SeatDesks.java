package dev.vgpu.core.seat;

import java.util.ArrayList;
import java.util.List;

/** Where the seat does what its clients ask for. */
final class SeatDesks implements AutoCloseable {
  private static final int ORDER_THREADS = 4;
  private static final int PREPARATION_THREADS = 8;
  private static final int CHANGE_THREADS = 16;

  /** One: whoever lists all there is without a pause has no more than a processor of the seat. */
  private static final int READING_THREADS = 1;

  private final List<Desk> open = new ArrayList<>();

  /** For what is quick, and is done for a client in its order. */
  final Desk orders = desk("orders", ORDER_THREADS);

  /** For what makes ready for programs, or asks backends. */
  final Desk preparations = desk("preparations", PREPARATION_THREADS);

  /** For what suspends, resumes or moves, and may wait for tenants. */
  final Desk changes = desk("changes", CHANGE_THREADS);

  /** For what only reads, and grows with the number of leases, of events or of records. */
  final Desk readings = desk("readings", READING_THREADS);

  /** Where no thread is left for one of them, those before it keep none. */
  private Desk desk(String name, int mostThreads) {
    boolean opened = false;
    try {
      Desk desk = new Desk(name, mostThreads);
      open.add(desk);
      opened = true;
      return desk;
    } finally {
      if (!opened) {
        close();
      }
    }
  }

  @Override
  public void close() {
    open.forEach(Desk::close);
  }
}
