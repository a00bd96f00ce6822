package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * Decides which tenants may use one GPU.
 *
 * <p>A state machine without a clock, a thread or a lock. Its owner reports what happened and calls
 * {@link #doWork} with the time; the scheduler opens and shuts the tenants' gates. Confined to its
 * owner, one caller at a time. The same events at the same times give the same decisions.
 *
 * <p>How it decides (the package page has the reasons and the provable bounds):
 *
 * <ul>
 *   <li>There are two {@link ShareLevel}s. Online and nearline tenants divide the GPU. Offline
 *       tenants divide the rest: the time in which no online or nearline tenant has work and may
 *       run. Within a level, {@link LevelTurns} either gives turns, or opens all gates.
 *   <li>When an online or nearline tenant may run, offline gates are shut at once and their running
 *       work is asked to end. If both sides yield by themselves and no other upper tenant waits for
 *       a turn, both stay open instead. A turn of the upper level ends only at its deadline.
 *   <li>The floor for offline tenants is a token bucket. When it holds a whole turn, an offline
 *       tenant gets one turn that is not preempted.
 *   <li>A turn ends only when the work inside has ended (the gate has <em>drained</em>). If little
 *       work is left and both tenants are measured on the device, the next tenant need not wait for
 *       that. An overrun is charged like all other use, and so is paid back.
 *   <li>Time counts against the shares only if the GPU was used, or if all tenants with work were
 *       at their cap. The time of hand-overs is charged to no tenant, and creates no debt.
 *   <li>A tenant that is idle between two calls, and would get the next turn anyway, keeps its turn
 *       for a short linger. A tenant that does not come back in time loses this privilege for a
 *       while.
 *   <li>Impossible reports of a gate are not believed: it cannot have used more than the time since
 *       its last report.
 * </ul>
 */
public final class ShareScheduler implements TurnStepper {
  /** The most elapsed time over which floor credit accumulates. */
  private static final double FLOOR_MEMORY_NS = 1_000_000_000;

  private static final long LEAST_WAKE_NS = 20_000;

  /** The factor by which the recorded largest lump shrinks with each report. */
  private static final double LUMP_KEPT = 0.98;

  private final SchedulerSettings settings;
  private final ShareLevel upper;
  private final ShareLevel offline;
  private final BesideOffline besideOffline = new BesideOffline();
  private final LanePauses pauses = new LanePauses();
  private final TurnLength lengths;
  private final ActiveGates gates;
  private final LevelTurns upperTurns;
  private final LevelTurns offlineTurns;
  private double floorCreditNs;
  private long lastNs;
  private long nextWakeNs = NEVER;

  /**
   * Creates a scheduler without tenants.
   *
   * @param settings the GPU's settings
   * @param observer receives preemptions and standstills
   * @param nowNs the present
   */
  public ShareScheduler(SchedulerSettings settings, TurnObserver observer, long nowNs) {
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
   * Reports that a tenant has work. Takes effect with the next {@link #doWork}.
   *
   * @param tenant the tenant
   * @param nowNs the present
   */
  public void wanted(Tenant tenant, long nowNs) {
    account(nowNs);
    join(tenant);
  }

  /**
   * Reports that no work of a tenant runs inside its gate any more, or that it gave up waiting.
   * Takes effect with the next {@link #doWork}.
   *
   * @param tenant the tenant
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
   * @param tenant the tenant
   * @param nowNs the present
   */
  public void remove(Tenant tenant, long nowNs) {
    account(nowNs);
    gates.forget(tenant);
    gates.standStill.forget(tenant);
    gates.early(tenant.isOffline()).forget(tenant);
    besideOffline.forget(tenant);
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
   * Reports that a tenant of several GPUs has work, but waits for the other GPUs before it wants
   * this one again. Its turn here is over. What it is owed keeps growing, for as long as {@link
   * SchedulerSettings#memoryNs()}.
   *
   * @param tenant the tenant; none of its work is running
   * @param nowNs the present
   */
  public void awaitOthers(Tenant tenant, long nowNs) {
    boolean wasRunnable = tenant.isRunnable();
    remove(tenant, nowNs);
    tenant.away |= wasRunnable;
  }

  /**
   * Excludes use from being charged, because a part that is being added to a tenant's gate used the
   * GPU under another scheduler before.
   *
   * @param tenant the tenant
   * @param usedNs the GPU time by which the gate's total grows with the new part
   */
  public void paid(Tenant tenant, long usedNs) {
    tenant.readNs += usedNs;
    gates.standStill.watch(tenant);
  }

  /**
   * Takes over a tenant from an earlier scheduler that is gone. What the tenant used until now
   * counts as paid. If its work is still running, it has the turn that is ending.
   *
   * @param tenant the tenant; this method shuts its gate
   * @param nowNs the present
   */
  public void adopt(Tenant tenant, long nowNs) {
    account(nowNs);
    tenant.readNs = tenant.gate.gpuTimeNs(lastNs);
    tenant.readBoundNs = tenant.gate.work().launchBoundNs();
    tenant.readStoppedNs = tenant.gate.work().stoppedNs();
    tenant.readStops = tenant.gate.work().stops();
    gates.standStill.watch(tenant);
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
   * Replaces a tenant's terms.
   *
   * @param tenant the tenant
   * @param request the new terms
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
    besideOffline.forget(tenant);
    if (tenant.isOffline() != (request.preemptionClass() == PreemptionClass.OFFLINE)) {
      tenant.lagNs = Math.min(0, tenant.lagNs);
    }
    tenant.setTerms(request);
    gates.know(tenant, wasKnown);
    if (wasRunnable) {
      join(tenant);
    }
    if (otherClass && tenant.open) {
      boolean ignored = gates.shut(tenant, null); // it belongs in another group now
    }
  }

  /**
   * {@return the tenant that has the turn, or whose turn is ending; the first if there are several;
   * null if there is none}
   */
  public @Nullable Tenant holder() {
    return gates.size() == 0 ? null : gates.get(0);
  }

  @Override
  public long nextWakeNs() {
    return nextWakeNs;
  }

  /**
   * {@return the GPU time that the tenant is owed, in nanoseconds; negative if it owes}
   *
   * @param tenant the tenant
   */
  public double lagNs(Tenant tenant) {
    return gates.levelOf(tenant).lag(tenant);
  }

  /** {@return how the GPU is shared now, and why} */
  public SchedulerState state() {
    return new StateReport(settings, gates, upperTurns, offlineTurns, lengths).make();
  }

  @Override
  public int doWork(long nowNs) {
    account(nowNs);
    gates.begin(nowNs);
    gates.settleEarly();
    besideOffline.settle(upper, offline);
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

  /**
   * If no tenant has had the turn for too long, gives a turn to the next one. If nobody may run,
   * looks for work that was not reported.
   */
  private void watch() {
    if (gates.isOpen(false) || gates.isOpen(true)) {
      boolean ignored = gates.standStill.isTooLong(null, gates);
      return;
    }
    Tenant next = upper.pick();
    next = next == null ? offline.pick() : next;
    Tenant unheard = next == null || next.isActive() ? gates.standStill.unheard(gates) : null;
    next = gates.size() == 0 ? next : null;
    if (unheard != null) {
      join(unheard);
      gates.wakeAt(gates.nowNs()); // its turn follows with the next step
    }
    if (gates.standStill.isTooLong(next, gates) && next != null) {
      gates.standStill.tell(next, state(), gates);
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

  /**
   * How long a gate is open in a floor turn. Work that processes have already queued counts too.
   */
  private long floorOpenNs(Tenant tenant) {
    long turnNs = floorTurnNs(tenant);
    return Math.max(settings.shortestTurnNs(), turnNs - tenant.gate.leastTurnNs() / 5);
  }

  private long floorTurnNs(Tenant tenant) {
    return Math.max(settings.shortestTurnNs(), tenant.gate.leastTurnNs());
  }

  /** Ends the floor turns that are over. Returns whether one continues. */
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

  /** Once the more urgent gates are shut, the open offline gates are in a floor turn. */
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
    gates.standStill.watch(tenant);
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

  /**
   * Books the time since the last call: which tenants used the GPU, and whose shares it counts
   * against.
   */
  private void account(long nowNs) {
    double passedNs = Math.max(0, nowNs - lastNs);
    lastNs = Math.max(lastNs, nowNs);
    gates.now(lastNs);
    if (gates.size() == 0) {
      upper.passed(passedNs, false);
      upper.advance(passedNs, 0);
      offline.passed(passedNs, false);
      offline.advance(passedNs, 0);
      upper.idle();
      offline.idle();
      return;
    }
    upperTurns.passed(passedNs);
    offlineTurns.passed(passedNs);
    double upperNs = 0;
    double offlineNs = 0;
    boolean floorTurn = false;
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      read(tenant, passedNs);
      gates.early(tenant.isOffline()).told(tenant, tenant.saidNs);
      besideOffline.told(tenant, tenant.saidNs, upper, offline);
      if (tenant.isOffline()) {
        offlineNs += tenant.usedNs;
        floorTurn |= tenant.floorTurn;
      } else {
        upperNs += tenant.usedNs;
      }
    }
    lengths.passed(passedNs, upperNs + offlineNs, lastNs);
    upper.told(passedNs, upperNs + offlineNs);
    offline.told(passedNs, upperNs + offlineNs);
    book(passedNs, upperNs, offlineNs, floorTurn);
  }

  private void book(double passedNs, double upperNs, double offlineNs, boolean floorTurn) {
    // Processes report their use later, in lumps. A lump is not time that passes once more; if it
    // were, caps would be exceeded.
    boolean contended = gates.runnable() > 1;
    // If offline work runs in the pauses of an upper tenant's turn, that time counts only if no
    // other upper tenant could have used it. Otherwise all waiting tenants would be owed more and
    // more, and only the most urgent of them would ever run.
    boolean inPauses = gates.isOpen(false) && upper.isAwaited(null);
    double upperClockNs = upperNs + (floorTurn || inPauses ? 0 : offlineNs);
    // Offline work that is still on the GPU after it gave way is measured while the urgent work
    // runs beside it: half of the measured time is its own.
    boolean beside = !floorTurn && gates.isOpen(false);
    double alsoNs = beside ? offlineNs / 2 : offlineNs;
    // A floor turn takes all of its time from more urgent tenants, so one that hardly uses the GPU
    // ends soon. (Its start and end cost time that is not charged to it.)
    double takenNs = floorTurn ? Math.max(alsoNs, passedNs / 4) : alsoNs;
    takenNs -= besideOffline.takeFloorBackNs();
    creditFloor(contended ? upperNs + alsoNs : passedNs, takenNs, floorTurn);
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      tenant.bookedNs += tenant.usedNs;
      gates.levelOf(tenant).charge(tenant, tenant.usedNs);
    }
    upper.passed(passedNs, gates.isActive(false));
    if (floorTurn) {
      upper.lost(passedNs);
    }
    upper.advance(contended || floorTurn ? upperClockNs : passedNs, upperNs);
    double offlineClockNs = contended || offlineNs == 0 ? offlineNs : passedNs;
    offline.passed(upper.size() == 0 ? passedNs : offlineClockNs, gates.isActive(true));
    offline.advance(offlineClockNs, offlineNs);
    gates.settleEarly();
    besideOffline.settle(upper, offline);
    upperTurns.timePassed(passedNs);
    offlineTurns.timePassed(pauses.leftNs(passedNs, upperNs, gates));
  }

  /** Reads what a tenant has used since the last reading, limited to what is possible. */
  private void read(Tenant tenant, double passedNs) {
    tenant.creditNs = Math.min(tenant.creditNs + passedNs, (double) settings.lockoutNs());
    long readNs = tenant.gate.gpuTimeNs(lastNs);
    double usedNs = Math.min((double) Math.max(0, readNs - tenant.readNs), tenant.creditNs);
    tenant.readNs = readNs;
    tenant.saidNs = usedNs;
    if (usedNs > 0) {
      tenant.work = tenant.gate.work();
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
      // What offline tenants get while no tenant is in their way is not charged to their floor.
      creditNs = floorTurn ? leftNs : Math.max(Math.min(0, creditNs), leftNs);
      double most = settings.offlineFloor() * FLOOR_MEMORY_NS;
      double least = settings.offlineFloor() * settings.lockoutNs();
      floorCreditNs = Math.max(-least, Math.min(Math.max(most, 1), creditNs));
    }
  }
}
