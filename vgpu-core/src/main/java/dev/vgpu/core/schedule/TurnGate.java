package dev.vgpu.core.schedule;

import dev.vgpu.spi.GpuWork;

/**
 * The scheduler's view of one virtual GPU: it opens and shuts the gate, and reads the use. An
 * implementation ensures that work runs only while the gate is open, and measures that work. The
 * methods are called by the scheduler's owner. They must not block, and must not call the scheduler
 * back.
 */
public interface TurnGate {
  /** Allows work to start. Called only while shut. */
  void open();

  /**
   * Stops further work from starting. Running work continues.
   *
   * @return whether nothing runs: {@code true} ends the turn now; after {@code false}, {@link
   *     ShareScheduler#drained} is called when the running work has ended
   */
  boolean shut();

  /**
   * Asks running work to end soon, if possible. Called after {@link #shut()} returned {@code
   * false}.
   *
   * @return how many pieces of running work were asked to end
   */
  int preempt();

  /** {@return whether work runs inside, or waits to} */
  boolean hasWork();

  /**
   * {@return the GPU time until now, in nanoseconds, including running work; never decreases}
   *
   * @param nowNs the present, on the clock of {@link System#nanoTime()}
   */
  long gpuTimeNs(long nowNs);

  /**
   * Tells the gate whether other tenants wait for the GPU. While they do, {@link
   * ShareScheduler#drained} must be called each time that the gate becomes idle while open;
   * otherwise it need not be.
   *
   * @param contended whether others wait
   */
  void contended(boolean contended);

  /**
   * {@return whether to poll {@link #isAbandoned} while waiting for its running work} False if the
   * end of the work is always reported.
   */
  default boolean mayBeAbandoned() {
    return false;
  }

  /**
   * {@return whether the running work cannot end, because its process was stopped or is dead} If
   * so, the turn ends without waiting for it.
   */
  default boolean isAbandoned() {
    return false;
  }

  /** {@return the shortest turn that is worth its hand-over, in nanoseconds; 0 means any} */
  default long leastTurnNs() {
    return 0;
  }

  /**
   * {@return whether its work stops by itself, at once, while a more urgent tenant is busy} If two
   * tenants of different urgency both do, both gates may be open together. The busy urgent tenant
   * announces itself and the other one obeys, without the scheduler. While held back this way, the
   * gate has work and its GPU time does not advance.
   */
  default boolean yieldsByItself() {
    return false;
  }

  /**
   * Tells a gate that yields by itself whether it is to yield. It does not during a turn at the
   * expense of more urgent tenants.
   *
   * @param obey whether it is to yield; true until this is called
   */
  default void yielding(boolean obey) {}

  /**
   * {@return whether it may be open beside other gates} True if its work is measured on the device,
   * which gives busy tenants equal time slices.
   */
  default boolean mayOverlap() {
    return false;
  }

  /**
   * {@return when the last work that {@link #gpuTimeNs} counts ended, on the same clock; negative
   * if not known} If it is not known, the turn is passed on only after the work has ended.
   */
  default long busyUntilNs() {
    return -1;
  }

  /**
   * Tells the gate that some of its reported use was slices of other tenants, whose work was on the
   * GPU beside its own.
   *
   * @param ns in nanoseconds
   */
  default void othersUsed(double ns) {}

  /** {@return what is known of its work besides {@link #gpuTimeNs}} */
  default GpuWork work() {
    return GpuWork.UNKNOWN;
  }

  /** {@return whether its turns are on several GPUs together} Never changes. */
  default boolean spansGpus() {
    return false;
  }

  /**
   * {@return whether other GPUs are kept for it until it has the turn here} If so, another tenant
   * of its level loses its turn early once this tenant is entitled to the next.
   */
  default boolean isAwaited() {
    return false;
  }

  /**
   * Tells the gate whether other gates are to be open beside it. If so, a part of the gate that
   * must not overlap stays shut; otherwise it may open again.
   *
   * @param others whether other gates are to be open
   * @return whether that is possible now; if not, nothing has changed
   */
  default boolean besideOthers(boolean others) {
    return true;
  }
}
