package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcessLife;
import dev.vgpu.cuda.process.ProcessLife.Mapping;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * Which processes of a lease have the lease's own report page mapped. Safe for use by several
 * threads.
 */
final class LeaseMappings {
  /** How long mappings are read for who asks which processes are genuine. */
  private static final long MOST_READING_NS = 500_000_000;

  /** How often the mappings of a process are read that has no socket. */
  private static final long PAUSE_NS = 20_000_000;

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

  /** Whether a process was seen without the page since it has no socket. Never waits. */
  boolean isSeenWithout(SeatSlot slot, long nowNs) {
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
   * Those that are what they say: a process names its own pid, and must not name another's to have
   * that suspended or ended. To be called without the lease's lock: it takes as long as the
   * processes make it take, up to a bound.
   */
  List<Long> genuine(List<SeatSlot> slots) {
    long untilNs = clock.nanoTime() + MOST_READING_NS;
    return slots.stream().filter(slot -> isGenuine(slot, untilNs)).map(slot -> slot.pid).toList();
  }

  /** Where it cannot be told, it is not: better a process that stays than a foreign one ended. */
  private boolean isGenuine(SeatSlot slot, long untilNs) {
    boolean mapped =
        slot.genuine || (clock.nanoTime() - untilNs < 0 && read(slot) == Mapping.MAPPED);
    // In this order: the mappings are those of the process that is there after they were read.
    boolean there = life.state(slot.pid, slot.startTime) != ProcessLife.State.DEAD;
    slot.genuine = there && mapped;
    return slot.genuine;
  }
}
