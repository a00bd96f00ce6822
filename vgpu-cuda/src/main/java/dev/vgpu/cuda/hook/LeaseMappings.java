package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcessLife;
import dev.vgpu.cuda.process.ProcessLife.Mapping;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * Tells which processes of a lease have the lease's own report page mapped. Safe for use by several
 * threads.
 */
final class LeaseMappings {
  /** Time limit for one call of {@link #genuine}. */
  private static final long MOST_READING_NS = 500_000_000;

  /** The least pause between two readings of a process without a socket. */
  private static final long PAUSE_NS = 20_000_000;

  private static final long SELF = ProcessHandle.current().pid();

  private final String reportEnd;
  private final ProcessLife life;
  private final NanoClock clock;
  private final Executor reader;

  LeaseMappings(String lease, ProcessLife life, NanoClock clock, Executor reader) {
    this.reportEnd = "/" + lease + "/" + LeasePages.REPORT;
    this.life = life;
    this.clock = clock;
    this.reader = reader;
  }

  /** {@return whether a process was seen without the page since it lost its socket} Never waits. */
  boolean isSeenWithout(SeatSlot slot, long nowNs) {
    if (slot.visible && slot.pid == SELF) {
      return slot.isOverdue(nowNs); // this process maps the page in any case
    }
    return slot.mapping.since(slot.disconnectedNs, nowNs, PAUSE_NS, reader, () -> read(slot))
        == Mapping.NOT_MAPPED;
  }

  private Mapping read(SeatSlot slot) {
    return slot.mapping.read(clock, () -> mapping(slot));
  }

  private Mapping mapping(SeatSlot slot) {
    if (!slot.visible && life.state(slot.pidHere, slot.startTime) == ProcessLife.State.DEAD) {
      slot.pidHere = life.pidHere(slot.pid, slot.startTime).orElse(0);
      if (slot.pidHere == 0) {
        return Mapping.NOT_MAPPED;
      }
    }
    return life.mapping(slot.pidHere, reportEnd);
  }

  /**
   * {@return the pids of the processes that really belong to the lease} A process reports its own
   * pid; it must not get another process suspended or ended by reporting that one's. Call this
   * without the lease's lock: the processes determine how long it takes, up to a bound.
   */
  List<Long> genuine(List<SeatSlot> slots) {
    long untilNs = clock.nanoTime() + MOST_READING_NS;
    return slots.stream().filter(slot -> isGenuine(slot, untilNs)).map(slot -> slot.pid).toList();
  }

  /** If in doubt, false: better to leave a process alone than to end a foreign one. */
  private boolean isGenuine(SeatSlot slot, long untilNs) {
    boolean mapped =
        slot.genuine || (clock.nanoTime() - untilNs < 0 && read(slot) == Mapping.MAPPED);
    // Last, so that the mappings are those of a process that was still there afterwards.
    boolean there = life.state(slot.pid, slot.startTime) != ProcessLife.State.DEAD;
    slot.genuine = there && mapped;
    return slot.genuine;
  }
}
