package dev.vgpu.core.simulate;

import dev.vgpu.core.schedule.TurnGate;
import java.util.ArrayDeque;
import java.util.Queue;

/** A tenant's gate in virtual time: calls of given lengths, one at a time. Not thread-safe. */
public final class VirtualGate implements TurnGate {
  private static final long NEVER = Long.MAX_VALUE;

  private final String id;
  private final long backlogCallNs;
  private final Queue<Long> queued = new ArrayDeque<>();
  private final long cancelTakesNs;
  private boolean open;
  private boolean contended;
  private long callStartNs = NEVER;
  private long callEndNs = NEVER;
  private long currentCallNs;
  private long doneNs;
  private long nowNs;

  private boolean tellsInLumps;
  private int opened;
  private int preempted;
  private int finished;

  /**
   * Makes one, shut.
   *
   * @param id the tenant's name
   * @param backlogCallNs the length of calls of which there are always more; 0: only those that are
   *     queued
   * @param cancelTakesNs how long a cancelled call still runs; negative: it cannot be cancelled
   */
  public VirtualGate(String id, long backlogCallNs, long cancelTakesNs) {
    this.id = id;
    this.backlogCallNs = backlogCallNs;
    this.cancelTakesNs = cancelTakesNs;
  }

  /** Tells what a call used only when it has ended, as processes do. */
  public void tellInLumps() {
    tellsInLumps = true;
  }

  /**
   * Adds a call.
   *
   * @param callNs how long it runs
   */
  public void queue(long callNs) {
    queued.add(callNs);
  }

  /** {@return the tenant's name} */
  public String id() {
    return id;
  }

  /** {@return how often it was opened} */
  public int opened() {
    return opened;
  }

  /** {@return how often its running work was asked to end} */
  public int preempted() {
    return preempted;
  }

  /** {@return how many calls have ended} */
  public int finished() {
    return finished;
  }

  /** {@return whether work may start} */
  public boolean isOpen() {
    return open;
  }

  /** {@return whether a call runs} */
  public boolean isRunning() {
    return callEndNs != NEVER;
  }

  long nextEventNs() {
    return callEndNs;
  }

  /** Moves to a moment; whether the scheduler must hear that the gate has drained. */
  boolean advance(long toNs) {
    nowNs = toNs;
    if (callEndNs > toNs) {
      return false;
    }
    doneNs += callEndNs - callStartNs;
    callStartNs = NEVER;
    callEndNs = NEVER;
    finished++;
    startNext();
    return !isRunning() && (!open || contended);
  }

  void startNext() {
    if (!open || isRunning() || !hasMore()) {
      return;
    }
    Long next = queued.poll();
    currentCallNs = next == null ? backlogCallNs : next;
    callStartNs = nowNs;
    callEndNs = nowNs + currentCallNs;
  }

  private boolean hasMore() {
    return backlogCallNs > 0 || !queued.isEmpty();
  }

  @Override
  public void open() {
    open = true;
    opened++;
    startNext();
  }

  @Override
  public boolean shut() {
    open = false;
    return !isRunning();
  }

  @Override
  public int preempt() {
    preempted++;
    if (!isRunning() || cancelTakesNs < 0) {
      return 0;
    }
    if (backlogCallNs == 0) {
      queued.add(currentCallNs);
    }
    callEndNs = Math.min(callEndNs, nowNs + cancelTakesNs);
    return 1;
  }

  @Override
  public boolean hasWork() {
    return isRunning() || hasMore();
  }

  @Override
  public long gpuTimeNs(long atNs) {
    return doneNs + (isRunning() && !tellsInLumps ? atNs - callStartNs : 0);
  }

  @Override
  public void contended(boolean isContended) {
    contended = isContended;
  }
}
