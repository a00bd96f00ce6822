package dev.vgpu.core.schedule;

/**
 * What the scheduler does to one virtual GPU: opens and shuts it, and reads what it used. Whoever
 * implements it sees to it that work runs only while it is open, and measures that work. Its
 * methods are called by the scheduler's owner, must not block, and must not call the scheduler
 * back.
 */
public interface TurnGate {
  /** Lets work start. Called only while shut. */
  void open();

  /**
   * Lets no further work start. Work that runs goes on.
   *
   * @return whether nothing runs: {@code true} ends the turn now; after {@code false} {@link
   *     ShareScheduler#drained} is called when the running work has ended
   */
  boolean shut();

  /**
   * Asks running work to end soon, where it can. Called after {@link #shut()} said {@code false}.
   *
   * @return how many pieces of running work were asked to end
   */
  int preempt();

  /** {@return whether work runs inside, or waits to} */
  boolean hasWork();

  /**
   * {@return the GPU time until now, in nanoseconds, running work included; never decreases}
   *
   * @param nowNs the present, on the clock of {@link System#nanoTime()}
   */
  long gpuTimeNs(long nowNs);

  /**
   * Tells the gate whether other tenants wait for the GPU. Only while they do, must {@link
   * ShareScheduler#drained} be called each time that the gate becomes idle while open.
   *
   * @param contended whether they do
   */
  void contended(boolean contended);

  /**
   * {@return whether {@link #isAbandoned} is worth asking while its running work is awaited} False
   * for work whose end is sure to be told.
   */
  default boolean mayBeAbandoned() {
    return false;
  }

  /**
   * {@return whether the running work cannot end, because its process was stopped or is dead} If
   * so, it is given up: the turn ends without it.
   */
  default boolean isAbandoned() {
    return false;
  }

  /** {@return the shortest turn that is worth its hand-over, in nanoseconds; 0: any} */
  default long leastTurnNs() {
    return 0;
  }

  /**
   * {@return whether its work stops by itself, at once, while a more urgent tenant is busy} Then
   * the gate of a less urgent tenant may stay open beside this one and that of this one beside a
   * more urgent tenant's: who is urgent and busy announces it, and who is not obeys, without a word
   * of the scheduler's. While it is held back so it has work, and its GPU time does not run.
   */
  default boolean yieldsByItself() {
    return false;
  }

  /**
   * Tells a gate that yields by itself whether it is to: not in a turn that it has at the expense
   * of the more urgent ones.
   *
   * @param obey whether it is to; so until told otherwise
   */
  default void yielding(boolean obey) {}

  /**
   * {@return whether it may be open beside other gates: its work is measured on the device, which
   * gives busy tenants equal slices of time}
   */
  default boolean mayOverlap() {
    return false;
  }

  /**
   * {@return when the last work that {@link #gpuTimeNs} counts ended, on the same clock; negative:
   * not known} Then its turn is not passed on before its work has ended.
   */
  default long busyUntilNs() {
    return -1;
  }

  /**
   * Tells that some of what it said it used was others': slices while their work was on the GPU
   * beside its own.
   *
   * @param ns in nanoseconds
   */
  default void othersUsed(double ns) {}

  /** {@return whether its turns are on several GPUs together} It never changes. */
  default boolean spansGpus() {
    return false;
  }

  /**
   * {@return whether other GPUs are kept for it until it has the turn here} Then a tenant of its
   * level does not keep its turn to the end, once this one is entitled to the next.
   */
  default boolean isAwaited() {
    return false;
  }

  /**
   * Tells whether other gates are to be open beside this one. A part of it that must not overlap
   * stays shut from now on, or may open again.
   *
   * @param others whether they are
   * @return whether that is possible now; if not, nothing has changed
   */
  default boolean besideOthers(boolean others) {
    return true;
  }
}
