package dev.vgpu.core.seat;

import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.core.node.HealthWatch;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.reclaim.MemoryReclaim;

/** What a process has at work while it holds the seat, besides the backends. */
record Holding(
    Node node,
    SeatLock lock,
    SeatServer server,
    LeaseDirectory disk,
    MemoryReclaim reclaim,
    HealthWatch health)
    implements AutoCloseable {

  /**
   * Stops when the seat is given up, in an order that leaves as little undone as possible if a step
   * hangs. What this process may still do by mistake is prevented first, and without waiting.
   */
  void stopDeciding() {
    server.table().stopDeciding();
    disk.close();
    reclaim.stop();
    node.stopDeciding();
    server.table().giveUp();
    node.stopDeciding(); // for what was granted meanwhile
    health.close();
    if (lock.isHeld()) {
      server.table().meter().close(); // otherwise the next holder writes the journal
    }
  }

  /** Lets another process take the seat, even if {@link #stopDeciding} hangs. */
  void release() {
    server.table().meter().abandon();
    lock.close();
  }

  /** Stops at the end of the node, before the backends are closed. */
  void stopServing() {
    reclaim.close();
    health.close();
    server.close(); // first: later requests go to the next holder
  }

  /** Stops at the end of the node, after the backends. */
  @Override
  public void close() {
    server.table().meter().close();
    disk.close();
  }
}
