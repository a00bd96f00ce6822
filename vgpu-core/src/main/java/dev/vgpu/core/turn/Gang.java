package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.TurnStepper;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The progress of a gang towards its turn: which members are held, and whether its gate is open. No
 * seat is taken while its lock is held. All methods except {@link #locked} are called with the lock
 * held.
 */
final class Gang {
  private static final long NEVER = TurnStepper.NEVER;
  private static final long MOST_PATIENCE_NS = 4_000_000_000L;
  private static final int PATIENT_TURNS = 4;

  enum Phase {
    /** The gate is shut; some members are not held. */
    GATHERING,
    /** All members are held, and the gate is to be opened. */
    GATHERED,
    OPEN,
    /** The gate is shut, and running work is awaited. */
    CLOSING
  }

  /** In the order in which their turns are acquired. */
  final List<GangMember> members = new ArrayList<>();

  private final ReentrantLock lock = new ReentrantLock();
  private final Supplier<Long> clock;
  private Phase phase = Phase.GATHERING;
  private boolean wants;
  private boolean removed;
  private long patienceNs;
  private long giveUpAtNs = NEVER;

  /** Whether there is news for the code that opens and shuts the gate. */
  private boolean news;

  Gang(Supplier<Long> clock, long sliceNs) {
    this.clock = clock;
    this.patienceNs = PATIENT_TURNS * sliceNs;
  }

  /** Runs an action with the lock held, after booking the time until now. */
  <T> T locked(Supplier<T> action) {
    lock.lock();
    try {
      settle();
      return action.get();
    } finally {
      lock.unlock();
    }
  }

  /** Books the time for which GPUs were kept from waiting tenants while the gang was incomplete. */
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

  /** Whether some scheduler has not offered it a turn yet. */
  private boolean isProbing() {
    return phase == Phase.GATHERING && isAny(member -> !member.ready);
  }

  /** Whether a member's turn is to be acquired or kept. */
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

  /** Whether the gang is entitled to a turn on all GPUs and only this member's turn is missing. */
  boolean isAwaited(GangMember member) {
    return wants && phase == Phase.GATHERING && firstUnheld() == member && !isProbing();
  }

  /** A scheduler offers a member its turn. The turn is kept if it is the next to be acquired. */
  void isGiven(GangMember member) {
    member.held = true;
    member.ready = true;
    if (!isNeeded(member)) {
      member.withdraw();
    }
    goOn();
  }

  /** Proceeds to the next members, or to the gate. */
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

  /** A scheduler ends a turn that is needed until the others are acquired. */
  void isToEnd() {
    news = true;
    if (phase == Phase.GATHERING && giveUpAtNs == NEVER) {
      giveUpAtNs = clock.get() + patienceNs;
    }
  }

  long giveUpAtNs() {
    return giveUpAtNs;
  }

  /** Records that waiting was in vain; the gang waits longer the next time. */
  void waitedInVain() {
    patienceNs = Math.min(2 * patienceNs, MOST_PATIENCE_NS);
  }

  /** Records that the gate opens. */
  void opens(long sliceNs) {
    phase = Phase.OPEN;
    giveUpAtNs = NEVER;
    patienceNs = PATIENT_TURNS * sliceNs;
  }

  /** Records that the gate is shut and nothing runs. */
  void gathersAgain(boolean works, boolean giveAllBack) {
    phase = Phase.GATHERING;
    wants(works);
    members.forEach(member -> member.ready = wants && member.held);
    giveBack(giveAllBack);
    goOn();
  }

  /** Gives back the turns that are to end, and those that are of no use. */
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

  /** Takes over running work, or none. This informs every scheduler. */
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
