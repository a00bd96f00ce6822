package dev.vgpu.simulation;

import java.util.ArrayDeque;
import java.util.Queue;

/** Calls that are queued from outside, or an endless supply of calls. Not thread-safe. */
final class CallQueue implements Workload {
  private final long backlogCallNs;
  private final Queue<Long> queued = new ArrayDeque<>();

  /**
   * Creates one.
   *
   * @param backlogCallNs the length of the calls of an endless supply; 0 means only queued calls
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
