package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * Decides who may use one GPU.
 *
 * <p>A state machine without a clock, a thread or a lock: its owner tells it what happened and
 * calls {@link #doWork} with the time; it opens and shuts the tenants' gates. Confined to its
 * owner, one caller at a time. The same events at the same times give the same decisions.
 *
 * <p>How it decides (why so, and what can be proven of it: the package's page):
 *
 * <ul>
 *   <li>Two {@link ShareLevel}s: online and nearline tenants divide the GPU; offline ones divide
 *       what these leave, that is the time in which none of them has work and may run. Within a
 *       level, {@link LevelTurns} gives turns, or opens all gates and holds back who got too much.
 *   <li>When an online or nearline tenant may run, offline gates are shut at once and their running
 *       work is asked to end; unless both yield by themselves: then both are open. Turns of the
 *       upper level end at their deadline only.
 *   <li>A floor for offline is a token bucket: when a whole turn is owed, offline gets one turn
 *       that is not preempted.
 *   <li>A turn ends only when the work inside has ended (the gate has <em>drained</em>); where
 *       little of it is left and both are measured on the device, others need not wait for that.
 *       What it took longer is charged like all else, and so is paid back.
 *   <li>Only time in which the GPU was used, or in which all who have work were at their cap,
 *       counts against the shares. What switching costs is nobody's time, and no debt grows from
 *       it.
 *   <li>A tenant that is idle between two calls and would get the next turn anyway keeps its turn
 *       for a short linger; one that does not come back in time loses that favour for a while.
 *   <li>What a gate says that cannot be is not believed: it never used more than the time that has
 *       passed since it last told anything.
 * </ul>
 */
public final class ShareScheduler implements TurnStepper {
  /** What {@link #nextWakeNs()} says when only an event can change anything. */
  public static final long NEVER = Long.MAX_VALUE;

  /** How much of the floor may be owed to offline at most, in time that has passed. */
  private static final double FLOOR_MEMORY_NS = 1_000_000_000;

  private static final long LEAST_WAKE_NS = 20_000;

  /** What is kept of the largest lump at each that is told. */
  private static final double LUMP_KEPT = 0.98;

  /** Is told of preemptions. */
  @FunctionalInterface
  public interface Observer {
    /**
     * A tenant lost its turn to a more urgent one.
     *
     * @param victim who lost it
     * @param by who arrived
     * @param askedToEnd how many running calls were asked to end
     */
    void preempted(Tenant victim, Tenant by, int askedToEnd);

    /**
     * The GPU stood still although somebody might have used it; it does not any more. That never
     * happens, unless news were lost or this scheduler is wrong.
     *
     * @param what what was found, and what was done
     */
    default void stoodStill(String what) {}
  }

  private final SchedulerSettings settings;
  private final ShareLevel upper;
  private final ShareLevel offline;
  private final TurnLength lengths;
  private final ActiveGates gates;
  private final LevelTurns upperTurns;
  private final LevelTurns offlineTurns;
  private double floorCreditNs;
  private long lastNs;
  private long nextWakeNs = NEVER;

  /**
   * Makes one with no tenants.
   *
   * @param settings what it goes by
   * @param observer is told of preemptions
   * @param nowNs the present
   */
  public ShareScheduler(SchedulerSettings settings, Observer observer, long nowNs) {
    this.settings = requireNonNull(settings, "settings");
    this.upper = new ShareLevel(settings);
    this.offline = new ShareLevel(settings);
    this.lengths = new TurnLength(settings);
    this.gates =
        new ActiveGates(settings, requireNonNull(observer, "observer"), lengths, upper, offline);
    this.upperTurns = new LevelTurns(upper, settings, gates, lengths, false);
    this.offlineTurns = new LevelTurns(offline, settings, gates, lengths, true);
    this.lastNs = nowNs;
  }

  /**
   * A tenant has work. Takes effect with the next {@link #doWork}.
   *
   * @param tenant which one
   * @param nowNs the present
   */
  public void wanted(Tenant tenant, long nowNs) {
    account(nowNs);
    join(tenant);
  }

  /**
   * Nothing of a tenant runs inside its gate any more, or it has given up waiting. Takes effect
   * with the next {@link #doWork}.
   *
   * @param tenant which one
   * @param nowNs the present
   */
  public void drained(Tenant tenant, long nowNs) {
    account(nowNs);
    if (tenant.draining) {
      tenant.drained = true;
    } else if (tenant.open) {
      tenant.idleTold = true;
    } else if (!tenant.gate.hasWork()) {
      leave(tenant);
    }
  }

  /**
   * Forgets a tenant whose gate is shut for good and has drained.
   *
   * @param tenant which one
   * @param nowNs the present
   */
  public void remove(Tenant tenant, long nowNs) {
    account(nowNs);
    gates.forget(tenant);
    gates.early(tenant.isOffline()).forget(tenant);
    lengths.forget(tenant);
    leave(tenant);
    gates.know(tenant, false);
    if (gates.tenants() == 0) {
      upperTurns.reset();
      offlineTurns.reset();
      nextWakeNs = NEVER;
    }
  }

  /**
   * A tenant of several GPUs has work, and waits for the others before it wants this one again. Its
   * turn here is over; what it is owed grows on, for as long as {@link
   * SchedulerSettings#memoryNs()}.
   *
   * @param tenant which one; nothing of it runs
   * @param nowNs the present
   */
  public void awaitOthers(Tenant tenant, long nowNs) {
    boolean wasRunnable = tenant.isRunnable();
    remove(tenant, nowNs);
    tenant.away |= wasRunnable;
  }

  /**
   * A part is added to a tenant's gate that has used the GPU before, under another scheduler: that
   * is paid.
   *
   * @param tenant which one
   * @param usedNs the GPU time that its gate tells more from now on
   */
  public void paid(Tenant tenant, long usedNs) {
    tenant.readNs += usedNs;
  }

  /**
   * Takes over a tenant that another scheduler had before, which is gone: what it used until now is
   * paid. If its work runs still, it has the turn that is ending.
   *
   * @param tenant which one; its gate is shut by this
   * @param nowNs the present
   */
  public void adopt(Tenant tenant, long nowNs) {
    account(nowNs);
    tenant.readNs = tenant.gate.gpuTimeNs(lastNs);
    boolean runs = !tenant.gate.shut();
    if (runs || tenant.gate.hasWork()) {
      join(tenant);
    }
    if (runs) {
      gates.adopt(tenant);
    } else {
      gates.forget(tenant);
    }
  }

  /**
   * Gives a tenant other terms.
   *
   * @param tenant which one
   * @param request what is granted from now on
   * @param nowNs the present
   */
  public void resize(Tenant tenant, VirtualGpuRequest request, long nowNs) {
    account(nowNs);
    boolean wasRunnable = tenant.isRunnable();
    boolean otherClass = tenant.preemptionClass != request.preemptionClass();
    boolean wasKnown = tenant.known;
    leave(tenant);
    gates.know(tenant, false);
    gates.early(tenant.isOffline()).forget(tenant);
    if (tenant.isOffline() != (request.preemptionClass() == PreemptionClass.OFFLINE)) {
      tenant.lagNs = Math.min(0, tenant.lagNs);
    }
    tenant.setTerms(request);
    gates.know(tenant, wasKnown);
    if (wasRunnable) {
      join(tenant);
    }
    if (otherClass && tenant.open) {
      boolean ignored = gates.shut(tenant, null); // it is to stand beside others than before
    }
  }

  /** {@return who has the turn, or whose turn is ending; null if nobody; of several the first} */
  public @Nullable Tenant holder() {
    return gates.size() == 0 ? null : gates.get(0);
  }

  @Override
  public long nextWakeNs() {
    return nextWakeNs;
  }

  /**
   * {@return the GPU time that the tenant is owed, in nanoseconds; negative: that it owes}
   *
   * @param tenant which one
   */
  public double lagNs(Tenant tenant) {
    return gates.levelOf(tenant).lag(tenant);
  }

  /** {@return how the GPU is shared now, and why so} */
  public SchedulerState state() {
    return new StateReport(settings, gates, upperTurns, offlineTurns, lengths).make();
  }

  @Override
  public int doWork(long nowNs) {
    account(nowNs);
    gates.begin(nowNs);
    gates.settleEarly();
    gates.separate();
    catchUp(upper, false);
    catchUp(offline, true);
    boolean floorDue = isFloorDue();
    boolean floorTurn = endFloorTurns(floorDue);
    upperTurns.step(floorDue || floorTurn);
    offlineTurns.step(false);
    if (floorDue && !floorTurn) {
      beginFloorTurns();
    }
    wakeForThoseWhoWait(floorTurn);
    watch();
    int work = gates.end();
    nextWakeNs = gates.wakeNs();
    return work;
  }

  /** Where nobody has had the turn for too long, gives one to who is next. */
  private void watch() {
    boolean isIdle = gates.size() == 0;
    Tenant next = isIdle ? upper.pick() : null;
    next = isIdle && next == null ? offline.pick() : next;
    if (gates.standStill.isTooLong(next, gates) && next != null) {
      gates.standStill.tell(next, state());
      floorCreditNs = 0;
      upperTurns.forceTurn();
      offlineTurns.forceTurn();
    }
  }

  private void catchUp(ShareLevel level, boolean ofOffline) {
    if (level.isBehind() && !gates.isActive(ofOffline)) {
      level.catchUp();
    }
  }

  // ---- the floor

  private boolean isFloorDue() {
    if (settings.offlineFloor() == 0 || upper.size() == 0 || offline.size() == 0) {
      return false;
    }
    Tenant next = offline.pick();
    return next != null && floorCreditNs >= floorTurnNs(next);
  }

  /** For how long a gate is open in a floor turn: what processes have on its way counts as well. */
  private long floorOpenNs(Tenant tenant) {
    long turnNs = floorTurnNs(tenant);
    return Math.max(settings.shortestTurnNs(), turnNs - tenant.gate.leastTurnNs() / 5);
  }

  private long floorTurnNs(Tenant tenant) {
    return Math.max(settings.shortestTurnNs(), tenant.gate.leastTurnNs());
  }

  /** Ends floor turns that are over; whether one goes on. */
  private boolean endFloorTurns(boolean floorDue) {
    boolean goesOn = false;
    for (int i = gates.size() - 1; i >= 0; i--) {
      Tenant tenant = gates.get(i);
      if (!tenant.floorTurn || !tenant.open) {
        continue;
      }
      boolean over = gates.nowNs() >= tenant.deadlineNs || !tenant.gate.hasWork();
      if (over && floorDue && tenant.gate.hasWork() && offline.pick() == tenant) {
        tenant.deadlineNs = gates.nowNs() + floorOpenNs(tenant);
        over = false;
      }
      if (!over) {
        goesOn = true;
        gates.wakeAt(tenant.deadlineNs);
        continue;
      }
      gates.endFloorTurn(tenant, upper.pick());
    }
    return goesOn;
  }

  /** Once the more urgent gates are shut, offline ones that are open have a floor turn. */
  private void beginFloorTurns() {
    if (gates.isOpen(false)) {
      return;
    }
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      if (tenant.open && !tenant.floorTurn) {
        gates.beginFloorTurn(tenant);
        offlineTurns.slices.begin(tenant);
        tenant.deadlineNs = gates.nowNs() + floorOpenNs(tenant);
        gates.wakeAt(tenant.deadlineNs);
      }
    }
  }

  private void wakeForThoseWhoWait(boolean floorTurn) {
    if (!gates.isOpen(false)) {
      upperTurns.wakeWhenEligible();
    }
    if (!gates.isOpen(true)) {
      offlineTurns.wakeWhenEligible();
    }
    if (settings.offlineFloor() > 0 && upper.size() > 0 && offline.size() > 0 && !floorTurn) {
      Tenant next = offline.pick();
      double missingNs = next == null ? 0 : floorTurnNs(next) - floorCreditNs;
      if (missingNs > 0) {
        long inNs = (long) Math.ceil(missingNs / settings.offlineFloor());
        gates.wakeAt(gates.nowNs() + Math.max(LEAST_WAKE_NS, inNs));
      }
    }
  }

  private void join(Tenant tenant) {
    gates.now(lastNs);
    gates.join(tenant);
  }

  private void leave(Tenant tenant) {
    gates.now(lastNs);
    gates.leave(tenant);
    if (upper.size() == 0 || offline.size() == 0) {
      floorCreditNs = 0;
    }
  }

  // ---- accounts

  /** Books the time since the last call: who used the GPU, and whose share it counts against. */
  private void account(long nowNs) {
    double passedNs = Math.max(0, nowNs - lastNs);
    lastNs = Math.max(lastNs, nowNs);
    gates.now(lastNs);
    if (gates.size() == 0) {
      upper.passed(passedNs, false);
      upper.advance(passedNs, 0);
      offline.passed(passedNs, false);
      offline.advance(passedNs, 0);
      return;
    }
    upperTurns.slices.passed(passedNs);
    offlineTurns.slices.passed(passedNs);
    double upperNs = 0;
    double offlineNs = 0;
    boolean floorTurn = false;
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      read(tenant, passedNs);
      gates.early(tenant.isOffline()).told(tenant, tenant.saidNs);
      if (tenant.isOffline()) {
        offlineNs += tenant.usedNs;
        floorTurn |= tenant.floorTurn;
      } else {
        upperNs += tenant.usedNs;
      }
    }
    lengths.passed(passedNs, upperNs + offlineNs, lastNs);
    book(passedNs, upperNs, offlineNs, floorTurn);
  }

  private void book(double passedNs, double upperNs, double offlineNs, boolean floorTurn) {
    // Processes tell what they used some time later, in lumps: such a lump is not time that passes
    // once more, or a cap would be passed.
    boolean contended = gates.runnable() > 1;
    // What offline uses in the pauses of a tenant that has the turn is time that nobody else of the
    // upper level could have used. If it counted, those who wait would all be owed more and more,
    // and of them the most urgent ones alone would ever run.
    boolean inPauses = gates.isOpen(false) && upper.isAwaited();
    double upperClockNs = upperNs + (floorTurn || inPauses ? 0 : offlineNs);
    // What offline has on its way when it gives way is measured beside the work that it gives way
    // to: half of that is true.
    boolean beside = !floorTurn && gates.isOpen(false);
    double alsoNs = beside ? offlineNs / 2 : offlineNs;
    // A floor turn takes all of its time from the more urgent ones: one that hardly uses it ends
    // soon. (Its beginning and its end cost some time that is not held against it.)
    double takenNs = floorTurn ? Math.max(alsoNs, passedNs / 4) : alsoNs;
    creditFloor(contended ? upperNs + alsoNs : passedNs, takenNs, floorTurn);
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      tenant.bookedNs += tenant.usedNs;
      gates.levelOf(tenant).charge(tenant, tenant.usedNs);
    }
    upper.passed(passedNs, gates.isActive(false));
    upper.advance(contended || floorTurn ? upperClockNs : passedNs, upperNs);
    double offlineClockNs = contended || offlineNs == 0 ? offlineNs : passedNs;
    offline.passed(upper.size() == 0 ? passedNs : offlineClockNs, gates.isActive(true));
    offline.advance(offlineClockNs, offlineNs);
    gates.settleEarly();
    upperTurns.passed(passedNs, upperNs);
    offlineTurns.passed(passedNs - upperNs, offlineNs);
  }

  /** Reads what a tenant used since it was last read, as far as that can be. */
  private void read(Tenant tenant, double passedNs) {
    tenant.creditNs = Math.min(tenant.creditNs + passedNs, (double) settings.lockoutNs());
    long readNs = tenant.gate.gpuTimeNs(lastNs);
    double usedNs = Math.min((double) Math.max(0, readNs - tenant.readNs), tenant.creditNs);
    tenant.readNs = readNs;
    tenant.saidNs = usedNs;
    if (usedNs > 0) {
      tenant.lumpNs = Math.max(usedNs, tenant.lumpNs * LUMP_KEPT);
      tenant.creditNs = Math.min(tenant.creditNs - usedNs, ActiveGates.LUMP_NS);
      Slices slices = (tenant.isOffline() ? offlineTurns : upperTurns).slices;
      double part = slices.told(tenant, usedNs);
      if (part < 1) {
        tenant.gate.othersUsed(usedNs * (1 - part));
        usedNs *= part;
      }
    }
    double paidNs = Math.min(tenant.prepaidNs, usedNs);
    tenant.prepaidNs -= paidNs;
    tenant.usedNs = usedNs - paidNs;
  }

  private void creditFloor(double clockNs, double offlineNs, boolean floorTurn) {
    if (settings.offlineFloor() > 0 && upper.size() > 0 && offline.size() > 0) {
      double creditNs = floorCreditNs + settings.offlineFloor() * clockNs;
      double leftNs = creditNs - offlineNs;
      // What offline gets while nobody is in its way is not held against its floor.
      creditNs = floorTurn ? leftNs : Math.max(Math.min(0, creditNs), leftNs);
      double most = settings.offlineFloor() * FLOOR_MEMORY_NS;
      double least = settings.offlineFloor() * settings.lockoutNs();
      floorCreditNs = Math.max(-least, Math.min(Math.max(most, 1), creditNs));
    }
  }
}
