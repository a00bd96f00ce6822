package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/**
 * Decides who has the turn on one GPU. Strict turns: one tenant at a time.
 *
 * <p>A state machine without a clock, a thread or a lock: its owner tells it what happened and
 * calls {@link #doWork} with the time; it opens and shuts the tenants' gates. Confined to its
 * owner, one caller at a time. The same events at the same times give the same decisions.
 *
 * <p>How it decides:
 *
 * <ul>
 *   <li>Two {@link ShareLevel}s: online and nearline tenants divide the GPU; offline ones divide
 *       what these leave, that is the time in which none of them has work and may run.
 *   <li>When an online or nearline tenant may run, an offline turn ends at once: its gate is shut
 *       and its running work asked to end. Turns of the upper level end at their deadline only.
 *   <li>A floor for offline is a token bucket: when a whole turn is owed, offline gets one turn
 *       that is not preempted.
 *   <li>The turn ends only when the work inside has ended (the gate has <em>drained</em>). What it
 *       took longer is charged like all else, and so is paid back.
 *   <li>Only time in which the GPU was used, or in which all who have work were at their cap,
 *       counts against the shares. What switching costs is nobody's time, and no debt grows from
 *       it.
 *   <li>A tenant that is idle between two calls and would get the next turn anyway keeps its turn
 *       for a short linger; one that does not come back in time loses that favour for a while.
 * </ul>
 */
public final class ShareScheduler implements TurnStepper {
  /** What {@link #nextWakeNs()} says when only an event can change anything. */
  public static final long NEVER = Long.MAX_VALUE;

  /** After so many lingers in a row in which it came back, a tenant is trusted to come back. */
  private static final int LINGER_WINS_TRUSTED = 8;

  /** After n lingers in vain, the next 2^n are not tried; n is at most this. */
  private static final int MOST_LINGER_MISSES = 6;

  /** How often it is asked whether work that should end was given up. */
  private static final long ABANDONED_CHECK_NS = 5_000_000;

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
  }

  private final SchedulerSettings settings;
  private final Observer observer;
  private final ShareLevel upper;
  private final ShareLevel offline;

  private @Nullable Tenant holder;
  private boolean holderOpen;
  private boolean holderDrained;
  private boolean holderPreempted;
  private boolean floorTurn;
  private boolean contended;
  private long abandonedCheckNs;
  private long deadlineNs;
  private long lingerUntilNs = NEVER;
  private long lingerMarkNs;
  private double floorCreditNs;
  private long lastNs;
  private long turns;
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
    this.observer = requireNonNull(observer, "observer");
    this.upper = new ShareLevel(settings);
    this.offline = new ShareLevel(settings);
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
    if (tenant == holder) {
      holderDrained = true;
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
    if (tenant == holder) {
      holder = null;
    }
    leave(tenant);
  }

  /**
   * A part is added to a tenant's gate that has used the GPU before, under another scheduler: that
   * is paid.
   *
   * @param tenant which one
   * @param usedNs the GPU time that its gate tells more from now on
   */
  public void paid(Tenant tenant, long usedNs) {
    tenant.chargedNs += usedNs;
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
    tenant.chargedNs = tenant.gate.gpuTimeNs(lastNs);
    boolean runs = !tenant.gate.shut();
    if (runs || tenant.gate.hasWork()) {
      join(tenant);
    }
    if (tenant == holder || (runs && holder == null)) {
      holder = tenant;
      holderOpen = false;
      holderDrained = !runs;
      holderPreempted = false;
      floorTurn = false;
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
    leave(tenant);
    if (tenant.isOffline() != (request.preemptionClass() == PreemptionClass.OFFLINE)) {
      tenant.lagNs = Math.min(0, tenant.lagNs);
    }
    tenant.setTerms(request);
    if (wasRunnable) {
      join(tenant);
    }
  }

  /** {@return who has the turn, or whose turn is ending; null if nobody} */
  public @Nullable Tenant holder() {
    return holder;
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
    return levelOf(tenant).lag(tenant);
  }

  @Override
  public int doWork(long nowNs) {
    account(nowNs);
    int work = 0;
    nextWakeNs = NEVER;
    if (holder != null) {
      work += holderOpen ? stepOpen(holder, nowNs) : stepDraining(holder, nowNs);
    }
    if (holder == null) {
      work += grantNext(nowNs);
    }
    return work;
  }

  /** The holder's gate is shut and its running work has not ended yet. */
  private int stepDraining(Tenant tenant, long nowNs) {
    if (!holderDrained && tenant.gate.mayBeAbandoned()) {
      if (nowNs >= abandonedCheckNs) {
        holderDrained = tenant.gate.isAbandoned();
        abandonedCheckNs = nowNs + ABANDONED_CHECK_NS;
      }
      wakeAt(abandonedCheckNs);
    }
    if (holderDrained) {
      endTurn(tenant);
      return 0;
    }
    Tenant urgent = upper.pick();
    if (urgent != null && isPreemptible(tenant) && !holderPreempted) {
      preempt(tenant, urgent);
    }
    return 0;
  }

  private int stepOpen(Tenant tenant, long nowNs) {
    boolean alone = isAlone();
    boolean hasWork = tenant.gate.hasWork();
    if (alone && tenant.takesSurplus()) {
      // Nobody waits and nothing caps it: it may keep its gate open and come and go without a word.
      return 0;
    }
    Tenant best = pick();
    Tenant urgent = isPreemptible(tenant) ? upper.pick() : null;
    if (urgent != null) {
      return shut(tenant, urgent);
    }
    if (hasWork) {
      if (nowNs < deadlineNs) {
        wakeAt(deadlineNs);
        wakeWhenPreempted(tenant, nowNs);
        return 0;
      }
      if (best == tenant) {
        deadlineNs = nowNs + turnNs(tenant);
        floorTurn = isFloorTurn(tenant);
        wakeAt(deadlineNs);
        wakeWhenPreempted(tenant, nowNs);
        return 0;
      }
      return shut(tenant, null);
    }
    if (best == tenant && lingers(tenant, nowNs)) {
      wakeAt(lingerUntilNs);
      return 0;
    }
    if (alone && nowNs < deadlineNs) {
      wakeAt(deadlineNs);
      return 0;
    }
    return shut(tenant, null);
  }

  /**
   * Whether an idle holder that would be picked again may keep its turn for a moment. One that has
   * come back in time again and again is trusted to the end of its turn, which saves the timer; one
   * that has not is not waited for the next times.
   */
  private boolean lingers(Tenant tenant, long nowNs) {
    if (isAlone() || settings.lingerNs() == 0) {
      return false;
    }
    boolean cameBack = lingerUntilNs != NEVER && tenant.chargedNs > lingerMarkNs;
    if (lingerUntilNs == NEVER || cameBack) {
      if (tenant.lingersToSkip > 0) {
        tenant.lingersToSkip--;
        return false;
      }
      tenant.lingerWins = cameBack ? tenant.lingerWins + 1 : tenant.lingerWins;
      tenant.lingerMisses = cameBack ? 0 : tenant.lingerMisses;
      boolean trusted = tenant.lingerWins >= LINGER_WINS_TRUSTED;
      lingerMarkNs = tenant.chargedNs;
      lingerUntilNs = nowNs + settings.lingerNs();
      lingerUntilNs = trusted ? Math.max(lingerUntilNs, deadlineNs) : lingerUntilNs;
      return true;
    }
    if (nowNs < lingerUntilNs) {
      return true;
    }
    tenant.lingerWins = 0;
    tenant.lingerMisses = Math.min(tenant.lingerMisses + 1, MOST_LINGER_MISSES);
    tenant.lingersToSkip = 1 << tenant.lingerMisses;
    lingerUntilNs = NEVER;
    return false;
  }

  private int shut(Tenant tenant, @Nullable Tenant urgent) {
    holderOpen = false;
    abandonedCheckNs = lastNs + ABANDONED_CHECK_NS;
    if (tenant.gate.mayBeAbandoned()) {
      wakeAt(abandonedCheckNs);
    }
    holderDrained = tenant.gate.shut();
    lingerUntilNs = NEVER;
    if (holderDrained) {
      endTurn(tenant);
      if (urgent != null && tenant.isRunnable()) {
        observer.preempted(tenant, urgent, 0);
      }
    } else if (urgent != null) {
      preempt(tenant, urgent);
    }
    return 1;
  }

  private void preempt(Tenant tenant, Tenant urgent) {
    holderPreempted = true;
    observer.preempted(tenant, urgent, tenant.gate.preempt());
  }

  private long turnNs(Tenant tenant) {
    return Math.max(settings.shortestTurnNs(), tenant.gate.leastTurnNs());
  }

  private boolean isAlone() {
    return upper.size() + offline.size() == 1;
  }

  private boolean isPreemptible(Tenant tenant) {
    return tenant.isOffline() && !floorTurn;
  }

  private void endTurn(Tenant tenant) {
    holder = null;
    if (!tenant.gate.hasWork()) {
      leave(tenant);
    }
  }

  private int grantNext(long nowNs) {
    Tenant best = pick();
    if (best == null) {
      wakeWhenEligible(upper, nowNs);
      wakeWhenEligible(offline, nowNs);
      return 0;
    }
    holder = best;
    holderOpen = true;
    holderDrained = false;
    holderPreempted = false;
    floorTurn = isFloorTurn(best);
    best.lastTurn = ++turns;
    deadlineNs = nowNs + turnNs(best);
    lingerUntilNs = NEVER;
    best.gate.contended(contended);
    best.gate.open();
    boolean bounded = contended || !best.takesSurplus();
    wakeAt(bounded ? deadlineNs : NEVER);
    wakeWhenPreempted(best, nowNs);
    return 1;
  }

  private @Nullable Tenant pick() {
    Tenant first = upper.pick();
    if (first == null || isFloorDue()) {
      Tenant second = offline.pick();
      if (second != null) {
        return second;
      }
    }
    return first;
  }

  /** Whether an offline tenant that runs now does so at the expense of a more urgent one. */
  private boolean isFloorTurn(Tenant tenant) {
    return tenant.isOffline() && isFloorDue() && upper.pick() != null;
  }

  private boolean isFloorDue() {
    return settings.offlineFloor() > 0 && floorCreditNs >= settings.shortestTurnNs();
  }

  private void join(Tenant tenant) {
    if (!tenant.isRunnable()) {
      levelOf(tenant).join(tenant, lastNs);
      tellContended();
    }
  }

  private void leave(Tenant tenant) {
    if (tenant.isRunnable()) {
      levelOf(tenant).leave(tenant, lastNs);
      tellContended();
    }
  }

  private void tellContended() {
    contended = upper.size() + offline.size() > 1;
    if (upper.size() == 0 || offline.size() == 0) {
      floorCreditNs = 0;
    }
    if (holder != null && holderOpen) {
      holder.gate.contended(contended);
    }
  }

  private void wakeAt(long atNs) {
    nextWakeNs = Math.min(nextWakeNs, atNs);
  }

  /** An offline turn ends when a more urgent tenant that was at its cap may run again. */
  private void wakeWhenPreempted(Tenant tenant, long nowNs) {
    if (isPreemptible(tenant)) {
      wakeWhenEligible(upper, nowNs);
    }
  }

  private void wakeWhenEligible(ShareLevel level, long nowNs) {
    double inNs = level.nextEligibleInNs();
    if (inNs < 1e18) {
      wakeAt(nowNs + (long) Math.ceil(inNs));
    }
  }

  private ShareLevel levelOf(Tenant tenant) {
    return tenant.isOffline() ? offline : upper;
  }

  /** Books the time since the last call: who used the GPU, and whose share it counts against. */
  private void account(long nowNs) {
    double passedNs = Math.max(0, nowNs - lastNs);
    lastNs = Math.max(lastNs, nowNs);
    Tenant tenant = holder;
    if (tenant == null) {
      upper.advance(passedNs, 0);
      offline.advance(passedNs, 0);
      return;
    }
    long gpuTimeNs = Math.max(tenant.chargedNs, tenant.gate.gpuTimeNs(lastNs));
    double usedNs = gpuTimeNs - tenant.chargedNs;
    tenant.chargedNs = gpuTimeNs;
    // Processes tell what they used some time later, in lumps: such a lump is not time that passes
    // once more, or a cap would be passed.
    double clockNs = contended ? usedNs : passedNs;
    creditFloor(tenant, clockNs, usedNs);
    levelOf(tenant).charge(tenant, usedNs);
    if (!tenant.isOffline()) {
      upper.advance(clockNs, usedNs);
    } else {
      offline.advance(clockNs, usedNs);
      if (!floorTurn) {
        upper.advance(clockNs, 0);
      }
    }
  }

  private void creditFloor(Tenant tenant, double clockNs, double usedNs) {
    if (settings.offlineFloor() > 0 && upper.size() > 0 && offline.size() > 0) {
      floorCreditNs += settings.offlineFloor() * clockNs - (tenant.isOffline() ? usedNs : 0);
      double most = settings.offlineFloor() * settings.lockoutNs();
      floorCreditNs = Math.max(-most, Math.min(most, floorCreditNs));
    }
  }
}
