package dev.vgpu.cuda.hook;

/**
 * Decides which events a lease's listener gets, from the processes' pages and messages. Guarded by
 * the lease's lock.
 *
 * <p>A process that waits for the GPU after each kernel is idle for microseconds each time. A look
 * at its page may hit such a pause, which must not end its turn. So idleness counts only if the
 * process announces it, or if it lasts.
 */
final class WorkWatch {
  static final int WANTED = 1;
  static final int DRAINED = 2;
  static final int PROCESSES = 4;

  /** Longer than any pause that is not announced; an announcement may also have been lost. */
  private static final long IDLE_NS = 5_000_000;

  /** A claim to be busy for longer after the gate was shut no longer delays others. */
  private static final long LONGEST_DRAIN_NS = 200_000_000;

  /** The same if it did so last time; work in flight is bounded far below this. */
  private static final long LONGEST_DISTRUSTED_DRAIN_NS = 5_000_000;

  private boolean contended;
  private boolean open;
  private boolean draining;
  private boolean distrusted;
  private long drainingSinceNs;
  private boolean armed;
  private boolean worked;
  private boolean idle = true;
  private long idleSinceNs;
  private int told;

  /**
   * The lease was another seat's: how many processes it has is told at the first look, also if none
   * is left by then.
   */
  void adopted() {
    told = -1;
  }

  /** The gate was opened: the next idleness is an event. */
  void opened() {
    open = true;
    draining = false;
    armed = true;
  }

  /**
   * The gate was shut. If work is on the GPU, its end is an event. While that is awaited, another
   * call changes nothing: it neither allows the work more time, nor takes the event's place.
   */
  void shut(boolean busy, long nowNs) {
    open = false;
    if (draining) {
      return;
    }
    draining = busy;
    drainingSinceNs = nowNs;
    distrusted &= busy;
  }

  void contended(boolean contended) {
    this.contended = contended;
  }

  boolean isDraining() {
    return draining;
  }

  /** {@return whether there is work, or was until a moment ago} */
  boolean worked() {
    return worked;
  }

  /** {@return the number of processes that was last reported; -1 if none was since a take-over} */
  int processes() {
    return told;
  }

  /**
   * Evaluates the current state.
   *
   * @param processes how many processes there are
   * @param works whether work is on the GPU or waits
   * @param busy whether work is on the GPU
   * @param wentOn whether work was done since the last look
   * @param isTold whether the processes themselves announced any idleness
   * @param nowNs when
   * @return the events for the listener
   */
  int take(int processes, boolean works, boolean busy, boolean wentOn, boolean isTold, long nowNs) {
    int events = processes == told ? 0 : PROCESSES;
    // A change in their number says nothing about the others, which may be between two kernels.
    boolean sure = isTold || processes == 0;
    told = processes;
    if (draining && (!busy || isOverdue(nowNs))) {
      distrusted = busy;
      draining = false;
      armed = false;
      worked = works;
      events |= DRAINED;
    }
    if (works) {
      events |= worked ? 0 : WANTED;
      worked = true;
      armed = true;
      idle = false;
      return events;
    }
    if (!idle || wentOn) {
      idle = true;
      idleSinceNs = nowNs;
    }
    if (sure || nowNs - idleSinceNs >= IDLE_NS) {
      worked = false;
      if (armed && open && contended) {
        armed = false;
        events |= DRAINED;
      }
    }
    return events;
  }

  /** {@return whether work on the GPU should have ended by now} */
  private boolean isOverdue(long nowNs) {
    return nowNs - drainingSinceNs > (distrusted ? LONGEST_DISTRUSTED_DRAIN_NS : LONGEST_DRAIN_NS);
  }
}
