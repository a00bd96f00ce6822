package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.request.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * A gang as seen by the scheduler of one of its GPUs. Its methods are called with that GPU's seat
 * held; its state is guarded by the gang's lock.
 */
final class GangMember implements TurnGate {
  final int index;
  private final GangGate gate;
  private final Gang gang;
  private final GpuSeat seat;
  private final ShareScheduler scheduler;
  private final Tenant tenant;

  /** Whether its scheduler has given it the turn and has not got it back. */
  boolean held;

  /**
   * Whether its scheduler has offered it a turn since the gang's last turn, so that it is entitled
   * to one.
   */
  boolean ready;

  /** Whether its scheduler has ended the turn and waits for it. */
  boolean ending;

  /** Whether it does so for a more urgent tenant. */
  boolean urgent;

  /** Whether others wait for its GPU. */
  boolean contended;

  private long idleNs;
  private long markNs;

  // News for its scheduler.
  boolean toAsk;
  boolean toDrain;
  private boolean toWithdraw;
  boolean toRemove;
  private boolean toAdopt;
  @Nullable VirtualGpuRequest toResize;

  GangMember(String id, GangGate gate, Gang gang, GangGate.Place place, VirtualGpuRequest request) {
    this.index = gang.members.size();
    this.gate = gate;
    this.gang = gang;
    this.seat = place.seat();
    this.scheduler = place.scheduler();
    this.tenant = new Tenant(id, this, request);
  }

  // ---- with the gang's lock held

  void settle(long nowNs, boolean isIdle) {
    idleNs += isIdle && held && contended ? nowNs - markNs : 0;
    markNs = nowNs;
  }

  void release() {
    held = false;
    ready = false;
    ending = false;
    urgent = false;
    toDrain = true;
  }

  /** Has no work on this GPU for now, and keeps no turn. */
  void withdraw() {
    held = false;
    toAsk = false;
    toWithdraw = true;
  }

  void adopt(boolean runs) {
    held = runs;
    ready = runs;
    ending = runs;
    urgent = false;
    toDrain = false;
    toWithdraw = false;
    toAdopt = true;
  }

  boolean hasNews() {
    return toAsk || toDrain || toWithdraw || toAdopt || toRemove || toResize != null;
  }

  // ---- news for its scheduler

  private record News(
      boolean ask,
      boolean drain,
      boolean withdraw,
      boolean works,
      boolean adopt,
      boolean remove,
      @Nullable VirtualGpuRequest terms) {}

  private News takeNews() {
    // A turn that is ending is reported once it has ended, not by earlier news.
    News news =
        new News(
            toAsk && gang.isNeeded(this),
            toDrain && !ending,
            toWithdraw && !held && !ending,
            gang.wants(),
            toAdopt,
            toRemove,
            toResize);
    toAsk = false;
    toDrain = false;
    toWithdraw = false;
    toAdopt = false;
    toRemove = false;
    toResize = null;
    return news;
  }

  /** Delivers the news to its scheduler. Called without any seat held. */
  void deliver() {
    seat.take();
    try {
      tell(gang.locked(this::takeNews), seat.clock().nanoTime());
    } finally {
      seat.stepAndLeave();
    }
  }

  private void tell(News news, long nowNs) {
    if (news.remove()) {
      scheduler.remove(tenant, nowNs);
      return;
    }
    if (news.terms() != null) {
      scheduler.resize(tenant, news.terms(), nowNs);
    }
    if (news.adopt()) {
      scheduler.adopt(tenant, nowNs);
    }
    if (news.drain()) {
      scheduler.drained(tenant, nowNs);
    }
    if (news.withdraw() && !news.works()) {
      scheduler.remove(tenant, nowNs);
    } else if (news.withdraw()) {
      scheduler.awaitOthers(tenant, nowNs);
    }
    if (news.ask()) {
      scheduler.wanted(tenant, nowNs);
    }
  }

  // ---- its scheduler's side

  @Override
  public void open() {
    gang.locked(
        () -> {
          ending = false;
          urgent = false;
          gang.isGiven(this);
          return this;
        });
    gate.tell(seat);
  }

  @Override
  public boolean shut() {
    boolean over =
        gang.locked(
            () -> {
              if (!held || gang.isRemoved()) {
                return true;
              }
              if (gang.phase() == Gang.Phase.GATHERING && !gang.isNeeded(this)) {
                held = false;
                toDrain |= ending; // it was asked before, and its end is awaited
                ending = false;
                return true;
              }
              ending = true;
              gang.isToEnd();
              return false;
            });
    gate.tell(seat);
    return over;
  }

  @Override
  public int preempt() {
    gang.locked(
        () -> {
          urgent |= held;
          gang.isNews();
          return this;
        });
    gate.tell(seat);
    return 0; // the first GPU's gate knows how many calls are asked to end
  }

  @Override
  public boolean hasWork() {
    return gang.locked(() -> gang.isNeeded(this));
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    return gate.usedNs(seat, nowNs) + gang.locked(() -> idleNs);
  }

  @Override
  public void contended(boolean isContended) {
    gang.locked(
        () -> {
          contended = isContended;
          gang.isNews();
          return this;
        });
    gate.tell(seat);
  }

  @Override
  public boolean spansGpus() {
    return true;
  }

  @Override
  public boolean isAwaited() {
    return gang.locked(() -> gang.isAwaited(this));
  }

  @Override
  public long leastTurnNs() {
    return gate.leastTurnNs();
  }
}
