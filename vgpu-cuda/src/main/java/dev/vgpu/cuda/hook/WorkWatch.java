package dev.vgpu.cuda.hook;

/**
 * Decides what a lease's listener is to be told, by what its processes' pages say and by what they
 * send. Guarded by the lease's lock.
 *
 * <p>A process that waits for the GPU after each kernel is idle for some microseconds each time. A
 * look at its page may fall into such a pause, and its turn must not end for that. So idleness
 * counts once the process tells it, or once it has lasted.
 */
final class WorkWatch {
  static final int WANTED = 1;
  static final int DRAINED = 2;
  static final int PROCESSES = 4;

  /** Longer than any pause that a process does not tell; its message may have been lost. */
  private static final long IDLE_NS = 5_000_000;

  /** A process that claims to be busy for longer after its gate was shut holds nobody up. */
  private static final long LONGEST_DRAIN_NS = 200_000_000;

  /** The same for one that has claimed so the last time; work in flight is bounded far below. */
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

  /** The gate is open: the next idleness is to be told. */
  void opened() {
    open = true;
    draining = false;
    armed = true;
  }

  /** The gate is shut; the end of what is on the GPU is to be told, if something is. */
  void shut(boolean busy, long nowNs) {
    open = false;
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

  /** Whether there is work, or was until a moment ago. */
  boolean worked() {
    return worked;
  }

  /** How many processes were last told of. */
  int processes() {
    return told;
  }

  /**
   * Takes in what is so now.
   *
   * @param processes how many there are
   * @param works whether work is on the GPU or waits to be
   * @param busy whether work is on the GPU
   * @param wentOn whether work was done since the last look
   * @param isTold whether idleness, if there is any, was told by the processes themselves
   * @return what the listener is to be told
   */
  int take(int processes, boolean works, boolean busy, boolean wentOn, boolean isTold, long nowNs) {
    int events = processes == told ? 0 : PROCESSES;
    // That one has come or gone says nothing of the others, who may be between two kernels.
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

  /** Whether what is on the GPU should have ended, if it is there at all. */
  private boolean isOverdue(long nowNs) {
    return nowNs - drainingSinceNs > (distrusted ? LONGEST_DISTRUSTED_DRAIN_NS : LONGEST_DRAIN_NS);
  }
}
