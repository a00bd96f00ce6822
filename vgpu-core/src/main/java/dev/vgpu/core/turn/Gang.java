package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.ShareScheduler;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * How far a gang has come with its turn: which of its members are held, and whether its gate is
 * open. No seat is taken within its lock. All but {@link #locked} is called with the lock held.
 */
final class Gang {
  private static final long NEVER = ShareScheduler.NEVER;
  private static final long MOST_PATIENCE_NS = 4_000_000_000L;
  private static final int PATIENT_TURNS = 4;

  enum Phase {
    /** The gate is shut; some members are not held. */
    GATHERING,
    /** All members are held, and the gate is to be opened. */
    GATHERED,
    OPEN,
    /** The gate is shut and what runs is awaited. */
    CLOSING
  }

  /** In the order in which their turns are won. */
  final List<GangMember> members = new ArrayList<>();

  private final ReentrantLock lock = new ReentrantLock();
  private final Supplier<Long> clock;
  private Phase phase = Phase.GATHERING;
  private boolean wants;
  private boolean removed;
  private long patienceNs;
  private long giveUpAtNs = NEVER;

  /** Something for who opens and shuts the gate. */
  private boolean news;

  Gang(Supplier<Long> clock, long sliceNs) {
    this.clock = clock;
    this.patienceNs = PATIENT_TURNS * sliceNs;
  }

  /** Does something with the lock held, having booked the time until now. */
  <T> T locked(Supplier<T> action) {
    lock.lock();
    try {
      settle();
      return action.get();
    } finally {
      lock.unlock();
    }
  }

  /** Books what time the GPUs were kept from others who wait, while the gang was incomplete. */
  private void settle() {
    long nowNs = clock.get();
    boolean idle = wants && (phase == Phase.GATHERING || phase == Phase.GATHERED);
    members.forEach(member -> member.settle(nowNs, idle));
  }

  Phase phase() {
    return phase;
  }

  void phase(Phase next) {
    phase = next;
  }

  boolean wants() {
    return wants;
  }

  void wants(boolean has) {
    wants = has && !removed;
  }

  boolean isRemoved() {
    return removed;
  }

  void remove() {
    removed = true;
    wants = false;
    members.forEach(member -> member.toRemove = true);
  }

  boolean isAny(Predicate<GangMember> what) {
    return members.stream().anyMatch(what);
  }

  private @Nullable GangMember firstUnheld() {
    for (GangMember member : members) {
      if (!member.held) {
        return member;
      }
    }
    return null;
  }

  /** Whether some scheduler has not come to it yet. */
  private boolean isProbing() {
    return phase == Phase.GATHERING && isAny(member -> !member.ready);
  }

  /** Whether a member's turn is to be won, or kept. */
  boolean isNeeded(GangMember member) {
    if (!wants || phase != Phase.GATHERING) {
      return wants;
    }
    if (isProbing()) {
      return !member.ready;
    }
    GangMember first = firstUnheld();
    return first == null || member.index <= first.index;
  }

  /**
   * Whether a member's turn is all that is waited for, the gang being entitled to it on all GPUs.
   */
  boolean isAwaited(GangMember member) {
    return wants && phase == Phase.GATHERING && firstUnheld() == member && !isProbing();
  }

  /** A scheduler has come to a member: its turn is kept, if it is the next to be won. */
  void isGiven(GangMember member) {
    member.held = true;
    member.ready = true;
    if (!isNeeded(member)) {
      member.withdraw();
    }
    goOn();
  }

  /** Goes on to the next members, or to the gate. */
  void goOn() {
    if (phase != Phase.GATHERING || !wants) {
      return;
    }
    if (isProbing()) {
      members.forEach(member -> member.toAsk |= !member.ready);
      return;
    }
    GangMember next = firstUnheld();
    if (next == null) {
      phase = Phase.GATHERED;
      news = true;
    } else {
      next.toAsk = true;
    }
  }

  /** A scheduler has ended a turn that is needed for the others' to be won. */
  void isToEnd() {
    news = true;
    if (phase == Phase.GATHERING && giveUpAtNs == NEVER) {
      giveUpAtNs = clock.get() + patienceNs;
    }
  }

  long giveUpAtNs() {
    return giveUpAtNs;
  }

  /** Has waited in vain, and will wait for longer the next time. */
  void waitedInVain() {
    patienceNs = Math.min(2 * patienceNs, MOST_PATIENCE_NS);
  }

  /** The gate opens. */
  void opens(long sliceNs) {
    phase = Phase.OPEN;
    giveUpAtNs = NEVER;
    patienceNs = PATIENT_TURNS * sliceNs;
  }

  /** The gate is shut, and nothing runs. */
  void gathersAgain(boolean works, boolean giveAllBack) {
    phase = Phase.GATHERING;
    wants(works);
    members.forEach(member -> member.ready = wants && member.held);
    giveBack(giveAllBack);
    goOn();
  }

  /** Gives turns back that were to end, and those that there is no use of. */
  void giveBack(boolean all) {
    for (GangMember member : members) {
      if (member.ending && (all || member.urgent)) {
        member.release();
      }
    }
    if (!isAny(member -> member.ending)) {
      giveUpAtNs = NEVER;
    }
    for (GangMember member : members) {
      if (!isNeeded(member) && !member.ending) {
        member.withdraw();
      }
    }
  }

  /** Takes over what runs, or nothing: so every scheduler is told. */
  void adopt(boolean runs, boolean works) {
    phase = runs ? Phase.CLOSING : Phase.GATHERING;
    wants(works);
    members.forEach(member -> member.adopt(runs));
    goOn();
  }

  void isNews() {
    news = true;
  }

  boolean takeNews() {
    boolean had = news;
    news = false;
    return had;
  }
}
