package dev.vgpu.core.schedule;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The gates that are open or whose work has not ended yet, and the rules for which of them may be
 * so together. Confined to the scheduler's owner.
 *
 * <p>Two gates may be open together only if both allow it. Either their work is measured on the
 * device and their level is sharing, or one is more urgent, both yield by themselves and no other
 * urgent tenant waits. If both are measured on the device, a more urgent tenant does not wait for
 * offline work that was asked to end, nor the next one for the last of a turn ({@link EarlyTurn}).
 */
final class ActiveGates {
  /** How often to check whether work that should end was abandoned. */
  private static final long ABANDONED_CHECK_NS = 5_000_000;

  /** The most use that is believed at once; processes report their use in lumps. */
  static final double LUMP_NS = 50_000_000;

  /** Limits the overrun that counts, so that one giant kernel does not shorten all later turns. */
  private static final double MOST_OVERRUN_NS = 10_000_000;

  /** Above this number of tenants, gates are not checked for whether all could be open together. */
  static final int MOST_TOGETHER = 8;

  final StandStill standStill;
  private final SchedulerSettings settings;
  private final TurnObserver observer;
  private final TurnLength lengths;
  private final ShareLevel upper;
  private final ShareLevel offline;
  private final List<Tenant> active = new ArrayList<>();
  private final EarlyTurns upperEarly = new EarlyTurns();
  private final EarlyTurns offlineEarly = new EarlyTurns();

  private long nowNs;
  private long wakeNs;
  private int changes;
  private @Nullable Tenant upperWaiting;
  private int tenants;
  private int urgentTenants;

  ActiveGates(
      SchedulerSettings settings,
      TurnObserver observer,
      TurnLength lengths,
      ShareLevel upper,
      ShareLevel offline) {
    this.settings = settings;
    this.observer = observer;
    this.standStill = new StandStill(observer);
    this.lengths = lengths;
    this.upper = upper;
    this.offline = offline;
  }

  int size() {
    return active.size();
  }

  Tenant get(int i) {
    return active.get(i);
  }

  ShareLevel levelOf(Tenant tenant) {
    return tenant.isOffline() ? offline : upper;
  }

  int runnable() {
    return upper.size() + offline.size();
  }

  boolean isOpen(boolean ofOffline) {
    return isAny(ofOffline, true);
  }

  boolean isActive(boolean ofOffline) {
    return isAny(ofOffline, false);
  }

  private boolean isAny(boolean ofOffline, boolean open) {
    for (int i = 0; i < active.size(); i++) {
      if (active.get(i).isOffline() == ofOffline && (active.get(i).open || !open)) {
        return true;
      }
    }
    return false;
  }

  // ---- a step

  /** Begins a step: finds the gates whose work has ended. */
  void begin(long atNs) {
    nowNs = atNs;
    wakeNs = TurnStepper.NEVER;
    changes = 0;
    upperWaiting = null;
    for (int i = active.size() - 1; i >= 0; i--) {
      Tenant tenant = active.get(i);
      if (tenant.draining) {
        settle(tenant);
      }
    }
  }

  /**
   * Ends a step: tells each open gate whether others wait. Returns how many gates were opened or
   * shut.
   */
  int end() {
    for (int i = 0; i < active.size(); i++) {
      Tenant tenant = active.get(i);
      if (tenant.open) {
        if (tenant.withOthers && active.size() == 1) {
          tenant.withOthers = !tenant.gate.besideOthers(false);
        }
        tellContended(tenant);
      }
    }
    return changes;
  }

  long nowNs() {
    return nowNs;
  }

  long wakeNs() {
    return wakeNs;
  }

  void wakeAt(long atNs) {
    wakeNs = Math.min(wakeNs, atNs);
  }

  private void settle(Tenant tenant) {
    if (!tenant.drained && tenant.gate.mayBeAbandoned()) {
      if (nowNs >= tenant.abandonedCheckNs) {
        tenant.drained = tenant.gate.isAbandoned();
        tenant.abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      }
      wakeAt(tenant.abandonedCheckNs);
    }
    standStill.awaited(tenant, this);
    if (tenant.drained) {
      ended(tenant);
    }
  }

  private void ended(Tenant tenant) {
    early(tenant.isOffline()).ended(tenant, nowNs);
    double countedNs = tenant.ranOver(MOST_OVERRUN_NS);
    levelOf(tenant).turnTakes(settings.shortestTurnNs() + countedNs);
    forget(tenant);
    if (!tenant.gate.hasWork()) {
      leave(tenant);
    }
  }

  // ---- who has work

  void join(Tenant tenant) {
    know(tenant, true);
    if (!tenant.isRunnable()) {
      levelOf(tenant).join(tenant, nowNs);
    }
  }

  void leave(Tenant tenant) {
    if (tenant.isRunnable()) {
      levelOf(tenant).leave(tenant, nowNs);
    }
  }

  /**
   * Records that a tenant arrived or left for good. Once all have left, no state of them remains.
   */
  void know(Tenant tenant, boolean known) {
    if (tenant.known == known) {
      return;
    }
    tenant.known = known;
    tenants += known ? 1 : -1;
    urgentTenants += tenant.isOffline() ? 0 : known ? 1 : -1;
    if (tenants == 0) {
      lengths.reset();
    }
  }

  int urgentTenants() {
    return urgentTenants;
  }

  int tenants() {
    return tenants;
  }

  void now(long atNs) {
    nowNs = atNs;
  }

  // ---- opening

  /**
   * Opens a gate that is not active, if all active ones allow it. Shuts gates that must give way.
   *
   * @param sharing whether the gate's level is sharing
   * @return whether the gate is open now
   */
  boolean tryOpen(Tenant tenant, boolean sharing) {
    boolean clear = true;
    for (int i = active.size() - 1; i >= 0; i--) {
      clear &= isClear(active.get(i), tenant, sharing);
    }
    Tenant before = upperWaiting;
    if (before != null && tenant.isOffline() && !maySideBySide(before, tenant, null)) {
      clear = false;
    }
    if (clear && !active.isEmpty()) {
      clear = besideOthers(tenant);
      for (int i = 0; clear && i < active.size(); i++) {
        clear = !active.get(i).open || besideOthers(active.get(i));
      }
    }
    if (clear) {
      open(tenant, sharing ? null : EarlyTurn.drainingBefore(tenant, active));
    } else if (!tenant.isOffline() && upperWaiting == null) {
      upperWaiting = tenant;
    }
    return clear;
  }

  /** Whether an active tenant leaves room for another one, or has just made room. */
  private boolean isClear(Tenant there, Tenant tenant, boolean sharing) {
    if (isFit(there, tenant, sharing)) {
      return true;
    }
    boolean preempts = !tenant.isOffline() && there.isOffline() && !there.floorTurn;
    if (there.draining) {
      if (preempts && !there.preempted) {
        preempt(there, tenant);
      }
      return false;
    }
    if (!there.isRunnable()) {
      return shut(there, null); // open but idle
    }
    return preempts && shut(there, tenant);
  }

  private boolean isFit(Tenant there, Tenant tenant, boolean sharing) {
    if (settings.strict()) {
      return false;
    }
    boolean overlap = there.gate.mayOverlap() && tenant.gate.mayOverlap();
    if (there.isOffline() == tenant.isOffline()) {
      long atNs = sharing ? nowNs : EarlyTurn.mayBeginNs(there, active);
      wakeAt(atNs > nowNs ? atNs : TurnStepper.NEVER);
      return overlap && nowNs >= atNs;
    }
    if (there.draining && there.isOffline()) {
      return overlap;
    }
    return maySideBySide(there, tenant, tenant);
  }

  /** The turns of a level that began before the previous turn's work had ended. */
  EarlyTurns early(boolean ofOffline) {
    return ofOffline ? offlineEarly : upperEarly;
  }

  /** Gives back what was charged twice, once the amount is known. */
  void settleEarly() {
    double ignored = upperEarly.settle(upper);
    // The upper level's clock also advances with offline use, so it is set back too.
    upper.advance(-offlineEarly.settle(offline), 0);
  }

  /**
   * Whether the gates of an upper and of an offline tenant may be open together. They may not while
   * another upper tenant waits for its turn: offline work that begins between the two turns would
   * take GPU time from it. {@code next}, whose gate is about to open, does not count.
   */
  private boolean maySideBySide(Tenant one, Tenant other, @Nullable Tenant next) {
    return bothYield(one, other) && !upper.isAwaited(next);
  }

  private boolean bothYield(Tenant one, Tenant other) {
    return !settings.strict()
        && !one.floorTurn
        && !other.floorTurn
        && one.gate.yieldsByItself()
        && other.gate.yieldsByItself();
  }

  private static boolean besideOthers(Tenant tenant) {
    if (!tenant.withOthers) {
      tenant.withOthers = tenant.gate.besideOthers(true);
    }
    return tenant.withOthers;
  }

  private void open(Tenant tenant, @Nullable Tenant before) {
    if (before != null) {
      settleEarly();
      early(tenant.isOffline()).begin(before, tenant, nowNs);
    }
    active.add(tenant);
    changes++;
    tenant.open = true;
    tenant.drained = false;
    tenant.preempted = false;
    tenant.idleTold = false;
    tenant.lingerUntilNs = TurnStepper.NEVER;
    tenant.creditNs = LUMP_NS;
    tenant.aloneSinceNs = before == null ? (double) nowNs : Double.MAX_VALUE;
    if (active.size() == 1 && tenant.withOthers) {
      tenant.withOthers = !tenant.gate.besideOthers(false);
    }
    tenant.contended = isContended(tenant);
    tenant.gate.contended(tenant.contended);
    tenant.gate.open();
    wakeAt(lengths.opened(tenant, before != null, nowNs));
  }

  /**
   * Shuts offline gates that are open beside more urgent ones and may not stay so: another urgent
   * tenant waits now, or a call of this JVM has joined one of the two.
   */
  void separate() {
    for (int i = active.size() - 1; i >= 0 && active.size() > 1; i--) {
      Tenant tenant = active.get(i);
      if (tenant.open && tenant.isOffline() && !tenant.floorTurn) {
        Tenant unfit = unfitBeside(tenant);
        if (unfit != null) {
          boolean ignored = shut(tenant, unfit);
        }
      }
    }
  }

  private @Nullable Tenant unfitBeside(Tenant tenant) {
    for (int i = 0; i < active.size(); i++) {
      Tenant other = active.get(i);
      if (!other.isOffline() && other.open && !maySideBySide(tenant, other, null)) {
        return other;
      }
    }
    return null;
  }

  // ---- shutting

  /**
   * Shuts an open gate.
   *
   * @param urgent the tenant that preempts it, or null
   * @return whether its turn has ended with that
   */
  boolean shut(Tenant tenant, @Nullable Tenant urgent) {
    changes++;
    tenant.open = false;
    tenant.draining = true;
    tenant.lingerUntilNs = TurnStepper.NEVER;
    tenant.abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
    lengths.shut(tenant);
    tenant.bookedAtShutNs = tenant.bookedNs;
    tenant.endExpectedNs = tenant.gate.busyUntilNs() + (long) Math.max(0, tenant.overrunNs);
    tenant.drained = tenant.gate.shut();
    obey(tenant);
    if (tenant.drained) {
      boolean worked = tenant.isRunnable();
      ended(tenant);
      if (urgent != null && worked && tenant.isRunnable()) {
        observer.preempted(tenant, urgent, 0);
      }
      return true;
    }
    if (tenant.gate.mayBeAbandoned()) {
      wakeAt(tenant.abandonedCheckNs);
    }
    standStill.shut(tenant, this);
    if (urgent != null) {
      preempt(tenant, urgent);
    }
    return false;
  }

  private void preempt(Tenant tenant, Tenant urgent) {
    tenant.preempted = true;
    observer.preempted(tenant, urgent, tenant.gate.preempt());
  }

  /**
   * Ends a floor turn. Running work may finish; otherwise a call longer than a turn would never
   * complete.
   *
   * @param urgent the tenant that runs next, or null
   */
  void endFloorTurn(Tenant tenant, @Nullable Tenant urgent) {
    obey(tenant);
    tenant.floorTurn = false;
    if (urgent != null && !bothYield(tenant, urgent)) {
      tenant.floorTurn = true; // stays set while it drains
      boolean ignored = shut(tenant, null);
    }
  }

  /** Makes a gate yield again after a floor turn. */
  void obey(Tenant tenant) {
    if (!tenant.obeys) {
      tenant.obeys = true;
      tenant.gate.yielding(true);
    }
  }

  /**
   * Starts a floor turn: from now on, the tenant's turn is at the expense of more urgent tenants.
   */
  void beginFloorTurn(Tenant tenant) {
    tenant.floorTurn = true;
    if (tenant.obeys && tenant.gate.yieldsByItself()) {
      tenant.obeys = false;
      tenant.gate.yielding(false);
    }
  }

  /** Takes over a tenant whose gate an earlier scheduler shut, and whose work is still running. */
  void adopt(Tenant tenant) {
    if (!tenant.isActive()) {
      active.add(tenant);
    }
    tenant.open = false;
    tenant.draining = true;
    tenant.drained = false;
    tenant.preempted = false;
    tenant.floorTurn = false;
    tenant.creditNs = LUMP_NS;
    tenant.abandonedCheckNs = nowNs;
    standStill.shut(tenant, this);
  }

  /** Ends a tenant's turn, whatever its gate does. */
  void forget(Tenant tenant) {
    if (tenant.isActive()) {
      boolean ignored = active.remove(tenant);
    }
    tenant.open = false;
    tenant.draining = false;
    tenant.drained = false;
    tenant.floorTurn = false;
  }

  // ---- notifying gates

  private void tellContended(Tenant tenant) {
    boolean contended = isContended(tenant);
    if (tenant.contended != contended) {
      tenant.contended = contended;
      tenant.idleTold = contended; // idleness was not reported until now
      tenant.gate.contended(contended);
      if (contended && !tenant.gate.hasWork()) {
        wakeAt(nowNs); // it became idle after this step had looked, without reporting it
      }
    }
  }

  /** Whether other tenants wait, so that the gate must report when it becomes idle. */
  private boolean isContended(Tenant tenant) {
    int others = runnable() - (tenant.isRunnable() ? 1 : 0);
    if (others > 0) {
      return !isUndisturbed(tenant);
    }
    // If more urgent tenants may arrive, offline processes keep little work on the GPU. (Calls do
    // not queue work ahead.)
    return tenant.isOffline() && urgentTenants > 0 && tenant.gate.leastTurnNs() > 0;
  }

  /**
   * Whether all others with work are offline and yield by themselves. To them it does not matter
   * whether this tenant is idle.
   */
  private boolean isUndisturbed(Tenant tenant) {
    return !tenant.isOffline()
        && upper.size() == (tenant.isRunnable() ? 1 : 0)
        && tenant.takesSurplus()
        && !settings.strict()
        && settings.offlineFloor() == 0
        && offline.size() <= MOST_TOGETHER
        && tenant.gate.yieldsByItself()
        && offline.allYield();
  }
}
