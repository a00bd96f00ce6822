package dev.vgpu.core.simulate;

import java.util.ArrayDeque;
import java.util.Queue;

/** Calls that somebody queues, or of which there are always more. Not thread-safe. */
final class CallQueue implements Workload {
  private final long backlogCallNs;
  private final Queue<Long> queued = new ArrayDeque<>();

  /**
   * Makes one.
   *
   * @param backlogCallNs the length of calls of which there are always more; 0: only those that are
   *     queued
   */
  CallQueue(long backlogCallNs) {
    this.backlogCallNs = backlogCallNs;
  }

  void queue(long callNs) {
    queued.add(callNs);
  }

  @Override
  public boolean hasKernel() {
    return backlogCallNs > 0 || !queued.isEmpty();
  }

  @Override
  public long takeKernel() {
    Long next = queued.poll();
    return next == null ? backlogCallNs : next;
  }

  @Override
  public long kernelEnded(long nowNs) {
    return 0;
  }

  @Override
  public void cancelled(long kernelNs) {
    if (backlogCallNs == 0) {
      queued.add(kernelNs);
    }
  }
}
