package dev.vgpu.core.seat;

import java.util.ArrayList;
import java.util.List;

/** The desks at which the seat runs its clients' requests. */
final class SeatDesks implements AutoCloseable {
  private static final int ORDER_THREADS = 4;
  private static final int PREPARATION_THREADS = 8;
  private static final int CHANGE_THREADS = 16;

  /** One thread: clients that list everything in a loop occupy one processor at most. */
  private static final int READING_THREADS = 1;

  /** One thread: what one such request holds in the heap is held once. */
  private static final int RECORD_THREADS = 1;

  private final List<Desk> open = new ArrayList<>();

  /** For quick requests, which run in the order of their client. */
  final Desk orders = desk("orders", ORDER_THREADS);

  /** For requests that prepare for programs, or query backends. */
  final Desk preparations = desk("preparations", PREPARATION_THREADS);

  /** For requests that suspend, resume or move, and may wait for tenants. */
  final Desk changes = desk("changes", CHANGE_THREADS);

  /** For read-only requests, whose cost grows with the number of leases or events. */
  final Desk readings = desk("readings", READING_THREADS);

  /** For requests that read what was used from disk, which takes up to seconds. */
  final Desk records = desk("records", RECORD_THREADS);

  /** Opens a desk. If no thread can be started for it, closes the desks opened before. */
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
