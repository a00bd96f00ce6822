package dev.vgpu.core.turn;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnGate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Stands in line at the schedulers of several GPUs for one tenant, whose gate is open while it has
 * the turn on all of them.
 *
 * <p>Each GPU's scheduler sees a <em>member</em> with a tenant of its own. How a turn comes about:
 *
 * <ul>
 *   <li>Turns are won one after the other, in the order of the GPUs: a member has work, as its
 *       scheduler sees it, when all before it are held. So no two gangs wait for each other.
 *   <li>When the last is won, the gate opens. It is shut when any of the schedulers ends its turn,
 *       not before a slice has passed, but at once for a more urgent tenant or when it is idle.
 *   <li>A turn that a scheduler ends while the others are still awaited is kept for some time, the
 *       longer the more often this was in vain; else two GPUs that are never free together would
 *       keep a gang waiting for ever. It is given back at once for a more urgent tenant. The bound
 *       also ends what no order of ours can: a call on a later GPU that waits for an earlier one.
 *   <li>GPU time is charged on each GPU alike; and the time in which a GPU was kept from others who
 *       waited while the gang was incomplete is charged there.
 * </ul>
 *
 * <p>Each member's methods are called with its GPU's seat held, and the gate is touched with the
 * first GPU's seat held. No two seats are ever held together: what concerns another GPU is noted
 * under the {@code lock}, within which no seat is taken, and delivered after the seat is left. News
 * are states, not steps, so that it does not matter who delivers them first.
 */
final class GangGate implements TurnLine, GpuSeat.Alarm {
  private static final long NEVER = ShareScheduler.NEVER;
  private static final long ABANDONED_CHECK_NS = 5_000_000;
  private static final long MOST_PATIENCE_NS = 4_000_000_000L;
  private static final int PATIENT_TURNS = 4;

  /**
   * One GPU's line.
   *
   * @param seat the GPU's
   * @param scheduler the GPU's
   */
  record Place(GpuSeat seat, ShareScheduler scheduler) {}

  private enum Phase {
    /** The gate is shut; some members are not held. */
    GATHERING,
    /** All members are held, and the gate is to be opened. */
    GATHERED,
    OPEN,
    /** The gate is shut and what runs is awaited. */
    CLOSING
  }

  private final TurnGate gate;
  private final GpuSeat seat;
  private final List<Member> members = new ArrayList<>();
  private final long shortestTurnNs;
  private final ReentrantLock lock = new ReentrantLock();

  // Guarded by the lock.
  private Phase phase = Phase.GATHERING;
  private boolean wants;
  private boolean removed;
  private boolean news;
  private long openedNs;
  private long patienceNs;
  private long giveUpAtNs = NEVER;

  // Guarded by the first seat.
  private long paidNs;
  private long abandonedCheckNs = NEVER;
  private boolean toldContended;
  private boolean toldPreempt;

  // Written with the first seat held.
  private volatile long usedNs;
  private volatile long leastTurnNs;

  /**
   * Makes one that has no work.
   *
   * @param id the virtual GPU's name
   * @param places at least two, in the order of the GPUs
   * @param gate what is opened and shut
   * @param request what is granted
   * @param shortestTurnNs how long a turn lasts at least
   */
  GangGate(
      String id,
      List<Place> places,
      TurnGate gate,
      VirtualGpuRequest request,
      long shortestTurnNs) {
    this.gate = gate;
    this.seat = places.get(0).seat();
    this.shortestTurnNs = shortestTurnNs;
    this.patienceNs = PATIENT_TURNS * shortestTurnNs;
    for (Place place : places) {
      members.add(new Member(id, place, members.size(), request));
    }
    seat.take();
    seat.add(this);
    seat.leave();
  }

  // ---- the members, with the lock held

  private @Nullable Member firstUnheld() {
    for (Member member : members) {
      if (!member.held) {
        return member;
      }
    }
    return null;
  }

  /** Whether a member is to be won, or kept. */
  private boolean isNeeded(Member member) {
    if (!wants || removed) {
      return false;
    }
    Member first = firstUnheld();
    return phase != Phase.GATHERING || first == null || member.index <= first.index;
  }

  /** Goes on to the next member, or to the gate. */
  private void goOn() {
    if (phase != Phase.GATHERING || !wants || removed) {
      return;
    }
    Member next = firstUnheld();
    if (next == null) {
      phase = Phase.GATHERED;
      news = true;
    } else {
      next.toAsk = true;
    }
  }

  /** Books what time the GPUs were kept idle until now. Before each change. */
  private void settle() {
    long nowNs = seat.clock().nanoTime();
    boolean idle = wants && (phase == Phase.GATHERING || phase == Phase.GATHERED);
    for (Member member : members) {
      member.idleNs += idle && member.held && member.contended ? nowNs - member.markNs : 0;
      member.markNs = nowNs;
    }
  }

  private boolean isAny(Predicate<Member> what) {
    return members.stream().anyMatch(what);
  }

  /** Gives turns back that were to end, and says of the others that there is no use of them. */
  private void giveBack(boolean all) {
    for (Member member : members) {
      if (member.ending && (all || member.urgent)) {
        member.held = false;
        member.ending = false;
        member.urgent = false;
        member.toDrain = true;
      }
    }
    if (!isAny(member -> member.ending)) {
      giveUpAtNs = NEVER;
    }
    for (Member member : members) {
      member.toDrain |= !isNeeded(member);
    }
  }

  /** Has what was noted delivered when this seat is left. */
  private void tell(GpuSeat from) {
    from.doAfterwards(this::deliver);
  }

  private void deliver() {
    for (Member member : members) {
      if (member.hasNews()) {
        member.deliver();
      }
    }
    lock.lock();
    boolean step = news;
    news = false;
    lock.unlock();
    if (step) {
      seat.take();
      try {
        step(seat.clock().nanoTime());
      } finally {
        seat.stepAndLeave();
      }
    }
  }

  // ---- the gate, with the first seat held

  private Phase phase() {
    lock.lock();
    try {
      return phase;
    } finally {
      lock.unlock();
    }
  }

  private void step(long nowNs) {
    leastTurnNs = gate.leastTurnNs();
    switch (phase()) {
      case GATHERING -> stepGathering(nowNs);
      case GATHERED -> stepGathered(nowNs);
      case OPEN -> stepOpen(nowNs);
      case CLOSING -> stepClosing(nowNs);
    }
    tell(seat);
  }

  private void stepGathering(long nowNs) {
    lock.lock();
    try {
      settle();
      boolean inVain = nowNs >= giveUpAtNs;
      patienceNs = inVain ? Math.min(2 * patienceNs, MOST_PATIENCE_NS) : patienceNs;
      giveBack(inVain);
      goOn();
    } finally {
      lock.unlock();
    }
  }

  private void stepGathered(long nowNs) {
    boolean works = gate.hasWork();
    boolean contended;
    lock.lock();
    try {
      settle();
      if (removed || !works || isAny(member -> member.urgent)) {
        phase = Phase.GATHERING;
        wants = works && !removed;
        giveBack(!works);
        goOn();
        return;
      }
      phase = Phase.OPEN;
      openedNs = nowNs;
      giveUpAtNs = NEVER;
      patienceNs = PATIENT_TURNS * Math.max(shortestTurnNs, leastTurnNs);
      contended = isAny(member -> member.contended);
    } finally {
      lock.unlock();
    }
    toldPreempt = false;
    toldContended = contended;
    gate.contended(contended);
    gate.open();
    stepOpen(nowNs);
  }

  private void stepOpen(long nowNs) {
    boolean works = gate.hasWork();
    boolean contended;
    boolean urgent;
    boolean ends;
    lock.lock();
    try {
      settle();
      contended = isAny(member -> member.contended);
      urgent = isAny(member -> member.urgent);
      ends =
          isAny(member -> member.ending)
              && (urgent || !works || nowNs >= endOfSliceNs());
      if (ends) {
        phase = Phase.CLOSING;
      } else if (wants && !works) {
        members.forEach(member -> member.toDrain = true);
      }
      wants = works;
    } finally {
      lock.unlock();
    }
    if (contended != toldContended) {
      toldContended = contended;
      gate.contended(contended);
    }
    if (ends) {
      abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      if (gate.shut()) {
        finish();
      } else if (urgent) {
        preempt();
      }
    }
  }

  private long endOfSliceNs() {
    return openedNs + Math.max(shortestTurnNs, leastTurnNs);
  }

  private void preempt() {
    toldPreempt = true;
    int ignored = gate.preempt();
  }

  private void stepClosing(long nowNs) {
    lock.lock();
    boolean urgent = isAny(member -> member.urgent);
    lock.unlock();
    if (urgent && !toldPreempt) {
      preempt();
    }
    if (nowNs >= abandonedCheckNs) {
      abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      if (gate.mayBeAbandoned() && gate.isAbandoned()) {
        finish();
      }
    }
  }

  /** The gate is shut and nothing runs: the turn has ended on all GPUs. */
  private void finish() {
    readUsed(seat.clock().nanoTime());
    boolean works = gate.hasWork();
    lock.lock();
    try {
      settle();
      phase = Phase.GATHERING;
      wants = works && !removed;
      giveBack(true);
      goOn();
    } finally {
      lock.unlock();
    }
  }

  private void readUsed(long nowNs) {
    usedNs = Math.max(usedNs, gate.gpuTimeNs(nowNs) - paidNs);
  }

  @Override
  public long atNs() {
    lock.lock();
    try {
      boolean ending = isAny(member -> member.ending);
      return switch (phase) {
        case GATHERING -> giveUpAtNs;
        case GATHERED -> NEVER;
        case OPEN -> ending ? endOfSliceNs() : NEVER;
        case CLOSING -> gate.mayBeAbandoned() ? abandonedCheckNs : NEVER;
      };
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void ring(long nowNs) {
    step(nowNs);
  }

  // ---- the tenant's side, with the first seat held

  @Override
  public void wanted() {
    lock.lock();
    try {
      if (wants || removed) {
        return;
      }
      settle();
      wants = true;
      goOn();
    } finally {
      lock.unlock();
    }
    tell(seat);
  }

  @Override
  public void drained() {
    switch (phase()) {
      case OPEN -> stepOpen(seat.clock().nanoTime());
      case CLOSING -> finish();
      case GATHERING, GATHERED -> {
        if (!gate.hasWork()) {
          lock.lock();
          settle();
          phase = Phase.GATHERING;
          wants = false;
          giveBack(true);
          lock.unlock();
        }
      }
    }
    tell(seat);
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    lock.lock();
    members.forEach(member -> member.toResize = request);
    lock.unlock();
    tell(seat);
  }

  @Override
  public void adopt() {
    long nowNs = seat.clock().nanoTime();
    paidNs = gate.gpuTimeNs(nowNs) - usedNs;
    boolean runs = !gate.shut();
    boolean works = runs || gate.hasWork();
    lock.lock();
    try {
      settle();
      phase = runs ? Phase.CLOSING : Phase.GATHERING;
      wants = works && !removed;
      abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      for (Member member : members) {
        member.held = runs;
        member.ending = runs;
        member.urgent = false;
        member.toDrain = false;
        member.toAdopt = true;
      }
      goOn();
    } finally {
      lock.unlock();
    }
    tell(seat);
  }

  @Override
  public void paid(long used) {
    paidNs += used;
  }

  @Override
  public void remove() {
    seat.remove(this);
    lock.lock();
    settle();
    removed = true;
    wants = false;
    members.forEach(member -> member.toRemove = true);
    lock.unlock();
    tell(seat);
  }

  /** What one GPU's scheduler opens and shuts. Called with that GPU's seat held. */
  private final class Member implements TurnGate {
    private final GpuSeat at;
    private final ShareScheduler scheduler;
    private final Tenant tenant;
    private final int index;

    // All that follows is guarded by the gang's lock.

    /** Its scheduler has given it the turn, and has not got it back. */
    private boolean held;

    /** Its scheduler has ended the turn and waits for it. */
    private boolean ending;

    /** It does so for a more urgent tenant. */
    private boolean urgent;

    private boolean contended;
    private long idleNs;
    private long markNs;

    // To be delivered.
    private boolean toAsk;
    private boolean toDrain;
    private boolean toAdopt;
    private boolean toRemove;
    private @Nullable VirtualGpuRequest toResize;

    Member(String id, Place place, int index, VirtualGpuRequest request) {
      this.at = place.seat();
      this.scheduler = place.scheduler();
      this.index = index;
      this.tenant = new Tenant(id, this, request);
    }

    boolean hasNews() {
      lock.lock();
      try {
        return toAsk || toDrain || toAdopt || toRemove || toResize != null;
      } finally {
        lock.unlock();
      }
    }

    /** Tells its scheduler what was noted. */
    void deliver() {
      at.take();
      try {
        tellScheduler(at.clock().nanoTime());
      } finally {
        at.stepAndLeave();
      }
    }

    private void tellScheduler(long nowNs) {
      lock.lock();
      boolean remove = toRemove;
      boolean adopt = toAdopt;
      boolean ask = toAsk && isNeeded(this);
      // What is ending is told when it has ended, and not by what was noted before.
      boolean drain = toDrain && !ending;
      VirtualGpuRequest terms = toResize;
      toAsk = false;
      toDrain = false;
      toAdopt = false;
      toRemove = false;
      toResize = null;
      lock.unlock();
      if (remove) {
        scheduler.remove(tenant, nowNs);
        return;
      }
      if (terms != null) {
        scheduler.resize(tenant, terms, nowNs);
      }
      if (adopt) {
        scheduler.adopt(tenant, nowNs);
      }
      if (drain) {
        scheduler.drained(tenant, nowNs);
      }
      if (ask) {
        scheduler.wanted(tenant, nowNs);
      }
    }

    @Override
    public void open() {
      lock.lock();
      try {
        settle();
        held = true;
        ending = false;
        urgent = false;
        toDrain = !isNeeded(this);
        goOn();
      } finally {
        lock.unlock();
      }
      tell(at);
    }

    @Override
    public boolean shut() {
      lock.lock();
      try {
        settle();
        if (!held || removed) {
          return true;
        }
        if (phase == Phase.GATHERING && !isNeeded(this)) {
          held = false;
          return true;
        }
        ending = true;
        if (phase == Phase.GATHERING && giveUpAtNs == NEVER) {
          giveUpAtNs = seat.clock().nanoTime() + patienceNs;
        }
        news = true;
      } finally {
        lock.unlock();
      }
      tell(at);
      return false;
    }

    @Override
    public int preempt() {
      lock.lock();
      if (held) {
        urgent = true;
        news = true;
      }
      lock.unlock();
      tell(at);
      return 0; // what is asked to end is known at the first GPU
    }

    @Override
    public boolean hasWork() {
      lock.lock();
      try {
        return isNeeded(this);
      } finally {
        lock.unlock();
      }
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      if (at == seat) {
        readUsed(nowNs);
      }
      lock.lock();
      try {
        settle();
        return usedNs + idleNs;
      } finally {
        lock.unlock();
      }
    }

    @Override
    public void contended(boolean isContended) {
      lock.lock();
      settle();
      news |= phase == Phase.OPEN && contended != isContended;
      contended = isContended;
      lock.unlock();
      tell(at);
    }

    @Override
    public long leastTurnNs() {
      return leastTurnNs;
    }
  }
}
