package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.schedule.TurnStepper;
import dev.vgpu.core.turn.Gang.Phase;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;

/**
 * Queues at the schedulers of several GPUs for one tenant, and opens the tenant's gate while it has
 * the turn on all of them.
 *
 * <p>Each GPU's scheduler sees a {@link GangMember} with a tenant of its own. A turn comes about as
 * follows:
 *
 * <ul>
 *   <li>First, each member waits until its scheduler offers it a turn, and gives that turn back at
 *       once. So no GPU is kept idle while the gang is not entitled to a turn on all its GPUs.
 *   <li>Then the turns are acquired one after the other, in the order of the GPUs, so that no two
 *       gangs wait for each other. Tenants of the same level give up the GPU before the end of
 *       their turn.
 *   <li>When the last turn is acquired, the gate opens. It is shut when any of the schedulers ends
 *       its turn, but not before a slice has passed. It is shut at once for a more urgent tenant,
 *       or when it is idle.
 *   <li>If a scheduler ends a turn while others are still missing, the turn is kept for some time.
 *       The time grows each time that this was in vain; otherwise two GPUs that are never free
 *       together would keep a gang waiting forever. The turn is given back at once for a more
 *       urgent tenant. The time limit also ends a wait that no lock order can prevent: a call on a
 *       later GPU that waits for an earlier one.
 *   <li>GPU time is charged on each GPU alike. While the gang is incomplete, the time for which a
 *       GPU is kept from waiting tenants is charged on that GPU.
 * </ul>
 *
 * <p>A member is called with its GPU's seat held, and the gate is used with the first GPU's seat
 * held. No two seats are ever held together: news for another GPU is noted in the {@link Gang} and
 * delivered after the seat is left. News is a state, not a step, so it does not matter which thread
 * delivers them first.
 */
final class GangGate implements TurnLine, GpuSeat.Alarm {
  private static final long NEVER = TurnStepper.NEVER;
  private static final long ABANDONED_CHECK_NS = 5_000_000;

  /**
   * One GPU of the gang.
   *
   * @param seat the GPU's seat
   * @param scheduler the GPU's scheduler
   */
  record Place(GpuSeat seat, ShareScheduler scheduler) {}

  private final Gang gang;
  private final TurnGate gate;
  private final GpuSeat seat;
  private final long shortestTurnNs;

  // The fields below are guarded by the first seat's lock.
  private long openedNs;
  private long paidNs;
  private long abandonedCheckNs;
  private boolean toldContended;
  private boolean toldPreempt;

  // The fields below are written with the first seat held.
  private volatile long usedNs;
  private volatile long leastTurnNs;

  /**
   * Creates a gang without work.
   *
   * @param id the virtual GPU's id
   * @param places at least two, in the order of the GPUs
   * @param gate the tenant's gate
   * @param request the granted terms
   * @param shortestTurnNs the shortest length of a turn
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
    this.gang = new Gang(seat.clock()::nanoTime, shortestTurnNs);
    for (Place place : places) {
      gang.members.add(new GangMember(id, this, gang, place, request));
    }
    seat.take();
    seat.add(this);
    seat.leave();
  }

  /** Arranges for the noted news to be delivered when this seat is left. */
  void tell(GpuSeat from) {
    from.doAfterwards(this::deliver);
  }

  private void deliver() {
    for (GangMember member : gang.members) {
      if (gang.locked(member::hasNews)) {
        member.deliver();
      }
    }
    if (gang.locked(gang::takeNews)) {
      seat.take();
      try {
        step(seat.clock().nanoTime());
      } finally {
        seat.stepAndLeave();
      }
    }
  }

  /** What the tenant used, for the account of one of its GPUs. */
  long usedNs(GpuSeat of, long nowNs) {
    if (of == seat) {
      readUsed(nowNs);
    }
    return usedNs; // for other GPUs, read when the turn ends or when the first GPU reads it
  }

  private void readUsed(long nowNs) {
    usedNs = Math.max(usedNs, gate.gpuTimeNs(nowNs) - paidNs);
  }

  long leastTurnNs() {
    return leastTurnNs;
  }

  private long sliceNs() {
    return Math.max(shortestTurnNs, leastTurnNs);
  }

  // ---- the gate, with the first seat held

  private void step(long nowNs) {
    leastTurnNs = gate.leastTurnNs();
    switch (gang.locked(gang::phase)) {
      case GATHERING -> stepGathering(nowNs);
      case GATHERED -> stepGathered(nowNs);
      case OPEN -> stepOpen(nowNs);
      case CLOSING -> stepClosing(nowNs);
    }
    tell(seat);
  }

  private void stepGathering(long nowNs) {
    gang.locked(
        () -> {
          boolean inVain = nowNs >= gang.giveUpAtNs();
          if (inVain) {
            gang.waitedInVain();
          }
          gang.giveBack(inVain);
          gang.goOn();
          return gang;
        });
  }

  private void stepGathered(long nowNs) {
    boolean works = gate.hasWork();
    boolean opens =
        gang.locked(
            () -> {
              if (!works || gang.isRemoved() || gang.isAny(member -> member.urgent)) {
                gang.gathersAgain(works, !works);
                return false;
              }
              gang.opens(sliceNs());
              toldContended = gang.isAny(member -> member.contended);
              return true;
            });
    if (opens) {
      openedNs = nowNs;
      toldPreempt = false;
      gate.contended(toldContended);
      gate.open();
      stepOpen(nowNs);
    }
  }

  private void stepOpen(long nowNs) {
    boolean works = gate.hasWork();
    boolean contended = gang.locked(() -> gang.isAny(member -> member.contended));
    if (contended != toldContended) {
      toldContended = contended;
      gate.contended(contended);
    }
    boolean ends =
        gang.locked(
            () -> {
              boolean urgent = gang.isAny(member -> member.urgent);
              boolean over = !works || urgent || nowNs >= openedNs + sliceNs();
              if (over && gang.isAny(member -> member.ending)) {
                gang.phase(Phase.CLOSING);
                return true;
              }
              if (gang.wants() && !works) {
                gang.members.forEach(member -> member.toDrain = true);
              }
              gang.wants(works);
              return false;
            });
    if (ends) {
      abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      if (gate.shut()) {
        finish();
      } else {
        stepClosing(nowNs);
      }
    }
  }

  private void stepClosing(long nowNs) {
    if (!toldPreempt && gang.locked(() -> gang.isAny(member -> member.urgent))) {
      toldPreempt = true;
      int ignored = gate.preempt();
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
    gang.locked(
        () -> {
          gang.gathersAgain(works, true);
          return gang;
        });
  }

  @Override
  public long atNs() {
    Phase phase = gang.locked(gang::phase);
    return switch (phase) {
      case GATHERING -> gang.locked(gang::giveUpAtNs);
      case GATHERED -> NEVER;
      case OPEN ->
          gang.locked(() -> gang.isAny(member -> member.ending)) ? openedNs + sliceNs() : NEVER;
      case CLOSING -> gate.mayBeAbandoned() ? abandonedCheckNs : NEVER;
    };
  }

  @Override
  public void ring(long nowNs) {
    step(nowNs);
  }

  // ---- the tenant's side, with the first seat held

  @Override
  public void wanted() {
    boolean isNew =
        gang.locked(
            () -> {
              if (gang.wants()) {
                return false;
              }
              gang.wants(true);
              gang.goOn();
              return true;
            });
    if (isNew) {
      tell(seat);
    }
  }

  @Override
  public void drained() {
    switch (gang.locked(gang::phase)) {
      case OPEN -> stepOpen(seat.clock().nanoTime());
      case CLOSING -> finish();
      case GATHERING, GATHERED -> {
        if (!gate.hasWork()) {
          gang.locked(
              () -> {
                gang.gathersAgain(false, true);
                return gang;
              });
        }
      }
    }
    tell(seat);
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    gang.locked(
        () -> {
          gang.members.forEach(member -> member.toResize = request);
          return gang;
        });
    tell(seat);
  }

  @Override
  public void adopt() {
    long nowNs = seat.clock().nanoTime();
    paidNs = gate.gpuTimeNs(nowNs) - usedNs;
    boolean runs = !gate.shut();
    boolean works = runs || gate.hasWork();
    abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
    gang.locked(
        () -> {
          gang.adopt(runs, works);
          return gang;
        });
    tell(seat);
  }

  @Override
  public void paid(long used) {
    paidNs += used;
  }

  @Override
  public void remove() {
    seat.remove(this);
    gang.locked(
        () -> {
          gang.remove();
          return gang;
        });
    tell(seat);
  }
}
