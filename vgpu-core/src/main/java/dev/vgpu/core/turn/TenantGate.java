package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.GpuWork;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A tenant as seen by its GPU's scheduler, or by the schedulers of a gang's GPUs. It has a gate for
 * calls and, once programs run under the virtual GPU, a backend's gate for processes. Both open and
 * shut together; a turn has ended when both have drained. Guarded by the seat's lock.
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

  /** What the calls had used when the backend began to measure them too; -1 if it does not. */
  private long callsFinalNs = -1;

  /** How much of the processes' measured time belonged to others; the rest, as last reported. */
  private double othersNs;

  private long processesNs;

  /**
   * Creates a shut gate.
   *
   * @param id the virtual GPU's id
   * @param seat the GPU's seat
   * @param scheduler the GPU's scheduler
   * @param calls the gate for calls
   * @param request the granted terms
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
   * Creates a shut gate for a gang, whose turns are on all its GPUs together.
   *
   * @param id the virtual GPU's id
   * @param seats the seats of its GPUs, in order; the first one's lock guards this object
   * @param schedulers the schedulers of its GPUs, in the same order
   * @param calls the gate for calls
   * @param request the granted terms
   * @param shortestTurnNs the shortest length of a turn
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
   * Records that its processes yielded to more urgent ones by themselves.
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

  /**
   * Calls have no express lane and overlap with no other tenant, unless the backend measures the
   * work that they start.
   */
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
  public GpuWork work() {
    return processes == null ? GpuWork.UNKNOWN : processes.work();
  }

  @Override
  public void othersUsed(double ns) {
    othersNs += ns;
    if (processes != null) {
      processes.othersNs((long) othersNs);
    }
  }

  /** Calls stay shut meanwhile. If one arrives, the scheduler gives a turn without others. */
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
        calls.open(); // a call has just arrived
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
    // The processes' part is up to the backend, which watches each process.
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

  // ---- the booking's side; all methods take the seat

  /**
   * Takes over a tenant that another scheduler had before.
   *
   * @param listens the gate for calls if it is in this JVM; from now on it reports to this object
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
   * @param lease the processes' gate, shut
   */
  public void enforce(EnforcedLease lease) {
    seat.take();
    try {
      processes = lease;
      othersNs = lease.othersNs();
      if (removed) {
        return; // given back while its backend prepared
      }
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

  /** Reports that a process has work. */
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

  /** Reports that no work of the processes is on the GPU any more. */
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
   * Stops measuring calls: the backend measures their work with that of the processes.
   *
   * @param callsNs what the calls had used when the backend started; if that is more than they have
   *     used by now, the present value counts
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
   * Tells the backend to what part of the GPU its processes limit themselves while no seat answers.
   *
   * @param request the granted terms
   * @param permille in thousandths of the GPU
   */
  public void entitle(VirtualGpuRequest request, int permille) {
    seat.take();
    try {
      if (permille != entitledPermille && processes != null) {
        boolean ignored = processes.tryResize(request, permille); // if refused, the old value stays
      }
      entitledPermille = permille;
    } finally {
      seat.leave();
    }
  }

  /** Removes the tenant. Both gates must be shut for good. */
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

  /** Suspends it from the start, for a lease that was suspended when it was taken over. */
  public void beginSuspended() {
    seat.take();
    try {
      suspended = true;
    } finally {
      seat.leave();
    }
  }

  /** Stops all work from starting and leaves the line, until {@link #resume}. */
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

  /** {@return whether none of its work is on the GPU any more, after {@link #suspend}} */
  public boolean isQuiet() {
    seat.take();
    try {
      return !callsPending && !processesPending;
    } finally {
      seat.leave();
    }
  }

  /** Allows work again, and queues for what is waiting. */
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

  /** What the processes used, without the time that belonged to others. */
  private long processesNs(EnforcedLease lease) {
    long ns = lease.gpuTimeNs(seat.clock().nanoTime()) - (long) othersNs;
    processesNs = Math.max(processesNs, ns); // the others' part becomes known a little later
    return processesNs;
  }

  /**
   * {@return the total use}
   *
   * @param ofCalls the use of the calls
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
