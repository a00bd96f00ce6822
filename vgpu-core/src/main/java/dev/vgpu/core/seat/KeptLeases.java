package dev.vgpu.core.seat;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Looks now and then whether ended leases that were kept for their programs can be released. There
 * is one look at a time: a look may take longer than the time between two. Confined to the loop's
 * thread, except where stated.
 */
final class KeptLeases {
  static final long EVERY_NS = 100_000_000;

  private final Desk.Line line;
  private final Runnable look;
  private final AtomicBoolean looking = new AtomicBoolean();
  private volatile boolean any;
  private long dueNs;

  /** Creates an instance that has nothing to look for; {@code look} runs in the line. */
  KeptLeases(Desk.Line line, Runnable look, long nowNs) {
    this.line = line;
    this.look = look;
    this.dueNs = nowNs;
  }

  /** A lease has ended and is kept for its programs. On any thread. */
  void lookAgain() {
    any = true;
  }

  /** Begins a look if one is due; returns when to call this again. */
  long tick(long nowNs) {
    if (!any) {
      return Long.MAX_VALUE;
    }
    if (nowNs - dueNs >= 0) {
      dueNs = nowNs + EVERY_NS;
      if (looking.compareAndSet(false, true)) {
        any = false; // before looking: a lease that ends in the meantime sets it again
        line.add(this::look);
      }
    }
    return dueNs;
  }

  private void look() {
    try {
      look.run();
    } finally {
      looking.set(false);
    }
  }
}
