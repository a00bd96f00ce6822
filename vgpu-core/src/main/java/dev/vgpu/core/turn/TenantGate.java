package dev.vgpu.core.turn;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.spi.EnforcedLease;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A tenant as its GPU's scheduler, or a gang's several, see it: a gate for calls and, once programs
 * are put under the virtual GPU, a backend's gate for processes. Both open and shut together; the
 * turn has ended when both have drained. Guarded by the seat.
 */
public final class TenantGate implements TurnGate, GateListener {
  private final GpuSeat seat;
  private final TurnGate calls;
  private final TurnLine line;

  private @Nullable EnforcedLease processes;
  private boolean open;
  private boolean contended;
  private boolean beside;
  private boolean callsPending;
  private boolean processesPending;
  private boolean callsEnded;
  private boolean removed;
  private boolean suspended;
  private int entitledPermille;
  private long turnsLost;

  /** What the calls had used when the backend began to measure them as well; -1: it does not. */
  private long callsFinalNs = -1;

  /** What of the processes' measured time was others', and what was last told to be theirs. */
  private double othersNs;

  private long processesNs;

  /**
   * Makes one, shut.
   *
   * @param id the virtual GPU's name
   * @param seat the GPU's
   * @param scheduler the GPU's
   * @param calls the gate for calls
   * @param request what is granted
   */
  public TenantGate(
      String id,
      GpuSeat seat,
      ShareScheduler scheduler,
      TurnGate calls,
      VirtualGpuRequest request) {
    this.seat = seat;
    this.calls = calls;
    this.line = new SchedulerLine(seat, scheduler, new Tenant(id, this, request));
  }

  /**
   * Makes one for a gang, shut: its turns are on all its GPUs together.
   *
   * @param id the virtual GPU's name
   * @param seats those of its GPUs, in their order; the first guards this
   * @param schedulers those of its GPUs, in the same order
   * @param calls the gate for calls
   * @param request what is granted
   * @param shortestTurnNs how long a turn lasts at least
   */
  public TenantGate(
      String id,
      List<GpuSeat> seats,
      List<ShareScheduler> schedulers,
      TurnGate calls,
      VirtualGpuRequest request,
      long shortestTurnNs) {
    this.seat = seats.get(0);
    this.calls = calls;
    List<GangGate.Place> places = new ArrayList<>();
    for (int i = 0; i < seats.size(); i++) {
      places.add(new GangGate.Place(seats.get(i), schedulers.get(i)));
    }
    this.line = new GangGate(id, places, this, request, shortestTurnNs);
  }

  // ---- the scheduler's side

  @Override
  public void open() {
    open = true;
    callsPending = false;
    processesPending = false;
    if (!suspended) {
      openParts();
    }
  }

  private void openParts() {
    if (!callsEnded && (!beside || callsFinalNs >= 0)) {
      calls.open();
    }
    if (processes != null) {
      processes.open();
    }
  }

  @Override
  public boolean shut() {
    open = false;
    callsPending = !callsEnded && !calls.shut();
    processesPending = processes != null && !processes.shut();
    return !callsPending && !processesPending;
  }

  @Override
  public int preempt() {
    int asked = callsPending ? calls.preempt() : 0;
    if (processes != null && processesPending) {
      turnsLost++;
      asked += processes.preempt();
    }
    return asked;
  }

  /**
   * Its processes gave way to more urgent ones by themselves.
   *
   * @param times how often
   */
  public void yielded(long times) {
    seat.take();
    try {
      turnsLost += times;
    } finally {
      seat.leave();
    }
  }

  @Override
  public boolean hasWork() {
    return !suspended
        && ((!callsEnded && calls.hasWork()) || (processes != null && processes.hasWork()));
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    long ns = callsFinalNs >= 0 ? callsFinalNs : calls.gpuTimeNs(nowNs);
    return processes == null ? ns : ns + processes.gpuTimeNs(nowNs);
  }

  @Override
  public void contended(boolean contended) {
    this.contended = contended;
    if (!callsEnded) {
      calls.contended(contended);
    }
    if (processes != null) {
      processes.contended(contended);
    }
  }

  @Override
  public long leastTurnNs() {
    return processes == null ? 0 : processes.leastTurnNs();
  }

  /** Calls have no lane and overlap with nobody, unless the backend measures what they start. */
  @Override
  public boolean yieldsByItself() {
    return processes != null && !callsUsed() && processes.yieldsByItself();
  }

  @Override
  public void yielding(boolean obey) {
    if (processes != null) {
      processes.yielding(obey);
    }
  }

  @Override
  public boolean mayOverlap() {
    return processes != null && !callsUsed() && processes.mayOverlap();
  }

  @Override
  public long busyUntilNs() {
    return processes != null && mayOverlap() ? processes.busyUntilNs() : -1;
  }

  @Override
  public void othersUsed(double ns) {
    othersNs += ns;
    if (processes != null) {
      processes.othersNs((long) othersNs);
    }
  }

  /** Calls stay shut meanwhile; one that comes makes the scheduler give a turn without others. */
  @Override
  public boolean besideOthers(boolean others) {
    if (others == beside) {
      return true;
    }
    if (others && callsUsed()) {
      return false;
    }
    if (open && !suspended && !callsEnded && callsFinalNs < 0) {
      if (!others) {
        calls.open();
      } else if (!calls.shut()) {
        calls.open(); // a call has come just now
        return false;
      }
    }
    beside = others;
    return true;
  }

  private boolean callsUsed() {
    return callsFinalNs < 0 && (callsPending || (!callsEnded && calls.hasWork()));
  }

  @Override
  public boolean mayBeAbandoned() {
    return calls.mayBeAbandoned();
  }

  @Override
  public boolean isAbandoned() {
    // The processes' part is the backend's business: it sees each process by itself.
    if (callsPending && !processesPending && calls.isAbandoned()) {
      callsPending = false;
    }
    return !callsPending && !processesPending;
  }

  // ---- the calls' side

  @Override
  public void wanted() {
    if (!suspended) {
      line.wanted();
    }
  }

  @Override
  public void drained() {
    callsPending = false;
    partDrained();
  }

  @Override
  public void ended() {
    callsEnded = true;
    callsPending = false;
    if (processes == null) {
      remove();
    } else {
      partDrained();
    }
  }

  @Override
  public @Nullable String tryResize(VirtualGpuRequest request) {
    int permille = request.computePercent().orElse(-1) * 10;
    entitledPermille = permille < 0 ? entitledPermille : permille;
    if (processes != null && !processes.tryResize(request, entitledPermille)) {
      return "its processes hold " + processes.memoryUsed();
    }
    line.resize(request);
    return null;
  }

  private void partDrained() {
    if (open || (!callsPending && !processesPending)) {
      line.drained();
    }
  }

  // ---- the booking's side; all take the seat

  /**
   * Takes over what another scheduler had before.
   *
   * @param listens the gate for calls, if it is one of this JVM; is told that this decides now
   */
  public void adopt(@Nullable InProcessGate listens) {
    seat.take();
    try {
      if (listens != null) {
        listens.listen(this);
      }
      line.adopt();
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * Adds the gate for processes.
   *
   * @param lease shut
   */
  public void enforce(EnforcedLease lease) {
    seat.take();
    try {
      processes = lease;
      othersNs = lease.othersNs();
      line.paid(lease.gpuTimeNs(seat.clock().nanoTime()));
      lease.contended(contended);
      lease.finishing(suspended);
      if (open && !suspended) {
        lease.open();
      }
      if (lease.hasWork()) {
        wanted();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** A process has work. */
  public void processesWanted() {
    seat.take();
    try {
      if (!removed) {
        wanted();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** Nothing of the processes is on the GPU any more. */
  public void processesDrained() {
    seat.take();
    try {
      processesPending = false;
      if (!removed) {
        partDrained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * Measures the calls no more: what they start is measured with the processes.
   *
   * @param callsNs what they had used when that began; more than they have used by now: now
   */
  public void countProcessesOnly(long callsNs) {
    seat.take();
    try {
      callsFinalNs = Math.max(0, Math.min(callsNs, calls.gpuTimeNs(seat.clock().nanoTime())));
      if (open && !suspended && beside && !callsEnded) {
        calls.open();
      }
    } finally {
      seat.leave();
    }
  }

  /**
   * Tells the backend what pace processes keep by themselves.
   *
   * @param request what is granted
   * @param permille in thousandths of the GPU
   */
  public void entitle(VirtualGpuRequest request, int permille) {
    seat.take();
    try {
      if (permille != entitledPermille && processes != null) {
        boolean ignored = processes.tryResize(request, permille); // refused: the old pace holds
      }
      entitledPermille = permille;
    } finally {
      seat.leave();
    }
  }

  /** Forgets the tenant; both gates are shut for good. */
  public void end() {
    seat.take();
    try {
      callsEnded = true;
      processes = null;
      remove();
    } finally {
      seat.stepAndLeave();
    }
  }

  private void remove() {
    if (!removed) {
      removed = true;
      line.remove();
    }
  }

  /** Lets nothing start from the beginning, for what was taken over suspended. */
  public void beginSuspended() {
    seat.take();
    try {
      suspended = true;
    } finally {
      seat.leave();
    }
  }

  /** Lets nothing start any more, and stands in no line, until {@link #resume}. */
  public void suspend() {
    seat.take();
    try {
      if (!suspended && !removed) {
        suspended = true;
        callsPending = !callsEnded && !calls.shut();
        if (processes != null) {
          processes.finishing(true);
          processesPending = !processes.shut();
        }
        partDrained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** {@return whether nothing of it is on the GPU any more, after {@link #suspend}} */
  public boolean isQuiet() {
    seat.take();
    try {
      return !callsPending && !processesPending;
    } finally {
      seat.leave();
    }
  }

  /** Stands in line again for what waits. */
  public void resume() {
    seat.take();
    try {
      if (suspended) {
        suspended = false;
        if (processes != null) {
          processes.finishing(false);
        }
        if (open) {
          openParts();
        }
        if (!removed && hasWork()) {
          wanted();
        }
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** What the processes used, without what was others'. */
  private long processesNs(EnforcedLease lease) {
    long ns = lease.gpuTimeNs(seat.clock().nanoTime()) - (long) othersNs;
    processesNs = Math.max(processesNs, ns); // what was others' is known a little later
    return processesNs;
  }

  /**
   * {@return what was used in all}
   *
   * @param ofCalls what the calls used
   */
  public UsageReading usage(UsageReading ofCalls) {
    seat.take();
    try {
      return processes == null
          ? ofCalls
          : ofCalls.with(processes, callsFinalNs, turnsLost, processesNs(processes));
    } finally {
      seat.leave();
    }
  }
}
