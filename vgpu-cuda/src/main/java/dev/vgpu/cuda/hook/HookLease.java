package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OPEN;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_REVOKED;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_BAD;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_ENDED;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_OK;

import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.ReportPage;
import dev.vgpu.cuda.process.LeasePrograms;
import dev.vgpu.cuda.process.ProgramCheck;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.MemoryMover;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One lease under the hook. Its gate is the grant word, which the processes map. Opening or
 * shutting it needs no message.
 *
 * <p>Two threads call this class: the scheduler's owner, through the SPI, and the {@link
 * HookServer} thread. They share a lock, which is held for microseconds at most. Only the server's
 * thread calls the listener, and without the lock.
 *
 * <p>Tenants write the report page and may truncate its file; an access then throws {@link
 * ReportPage.LostException} or {@link InternalError}. Such a lease is given up: its gate is shut
 * for good, and it counts as idle.
 */
final class HookLease extends LeaseReadings {
  private static final Logger log = LoggerFactory.getLogger(HookLease.class);

  /** A turn takes about 0.1 to 0.2 ms to pass between processes: at most 2 % of this. */
  private static final long LEAST_TURN_NS = 10_000_000;

  /** Idle or held processes are polled less often; they send a message when they want to work. */
  private static final long IDLE_LOOK_NS = 10_000_000;

  /** The same while no lease has work; the processes then also send a message when work begins. */
  private static final long RESTING_LOOK_NS = 400_000_000;

  private final HookEnforcement owner;
  private final ListenerTeller teller;
  private final Map<String, String> environment;
  final GrantPage grant;
  private final ReportPage report;
  private final LeaseExpress express;
  private final LeasePrograms programs;
  private final SlotSecrets secrets;
  private final WorkWatch watch = new WorkWatch();
  private boolean ended;
  private long lookedNs, lastGpuNs;

  private HookLease(
      String id,
      HookEnforcement owner,
      LeasePages pages,
      GrantPage grant,
      LeaseExpress express,
      SlotTable slots,
      Listener listener,
      Map<String, String> environment) {
    super(id, slots, pages.member());
    this.owner = owner;
    this.teller = new ListenerTeller(id, listener);
    this.environment = environment;
    this.programs = new LeasePrograms(environment, owner.life());
    this.grant = grant;
    this.report = pages.report();
    this.secrets = SlotSecrets.of(id, pages.grant(), owner.secretKey());
    this.express = express;
  }

  static HookLease on(
      LeasePages pages,
      String id,
      HookEnforcement owner,
      @Nullable ExpressLane lane,
      PreemptionClass preemptionClass,
      Listener listener,
      Map<String, String> environment) {
    GrantPage grant = new GrantPage(pages.grant(), owner.isLevel2Allowed());
    LeaseExpress express = new LeaseExpress(id, lane, grant, preemptionClass);
    LeaseMappings mappings = new LeaseMappings(id, owner.life(), owner.clock(), owner.mapsReader());
    SlotTable slots =
        new SlotTable(pages, express, mappings, owner.life(), owner.clock().nanoTime());
    return new HookLease(id, owner, pages, grant, express, slots, listener, environment);
  }

  /** Writes the grant, with the gate shut. */
  void begin(
      VirtualGpuRequest request, boolean adopted, long contextBytes, long pid, long startTime) {
    synchronized (lock) {
      grant.begin(pid, startTime, owner.life().pidNamespace(), contextBytes);
      grant.terms(request, request.computePercent().orElse(100) * 10);
      MemoryTerms.begin(grant, request, adopted);
      if (adopted) {
        watch.adopted();
      }
      express.begin();
      grant.word(0);
      grant.beat(owner.clock().nanoTime());
    }
  }

  @Override
  public void gpus(List<GpuId> gpus) {
    synchronized (lock) {
      grant.devices(gpus);
    }
  }

  @Override
  public void open() {
    synchronized (lock) {
      if (ended) {
        return;
      }
      watch.opened();
      grant.countTurn();
      grant.word(GRANT_OPEN);
      if (slots.count() != 0) {
        grant.wake(owner.wake());
      }
    }
  }

  @Override
  public boolean shut() {
    synchronized (lock) {
      if (ended) {
        return true;
      }
      grant.word(0);
      boolean busy = fresh(slots::isBusy, false);
      watch.shut(busy, owner.clock().nanoTime());
      return !busy;
    }
  }

  @Override
  public int preempt() {
    synchronized (lock) {
      grant.preempted(owner.wake());
      // Work in flight is bounded in time and ends by itself, or is stopped: nothing to wait for.
      return 0;
    }
  }

  @Override
  public boolean hasWork() {
    synchronized (lock) {
      return !ended && (fresh(slots::hasWork, false) || watch.worked());
    }
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    synchronized (lock) {
      lastGpuNs = Math.max(lastGpuNs, fresh(() -> slots.gpuTimeNs(nowNs), lastGpuNs));
      return lastGpuNs;
    }
  }

  @Override
  public void contended(boolean contended) {
    synchronized (lock) {
      watch.contended(contended);
      grant.contended(contended);
    }
  }

  @Override
  public boolean yieldsByItself() {
    synchronized (lock) {
      // As of the last look: it changes only when processes attach, and the scheduler asks often.
      return !ended && slots.yieldByThemselves();
    }
  }

  @Override
  public void yielding(boolean obey) {
    synchronized (lock) {
      slots.obey(obey);
    }
  }

  @Override
  public void finishing(boolean finish) {
    synchronized (lock) {
      grant.finishing(finish);
      slots.finishing(finish);
    }
  }

  @Override
  public boolean mayOverlap() {
    return true; // device events measure the work, and the device itself slices its time
  }

  @Override
  public long busyUntilNs() {
    synchronized (lock) {
      return guarded(slots::busyUntilNs, -1L);
    }
  }

  @Override
  public long othersNs() {
    synchronized (lock) {
      return grant.othersNs();
    }
  }

  @Override
  public void othersNs(long ns) {
    synchronized (lock) {
      grant.othersNs(ns);
    }
  }

  @Override
  public long leastTurnNs() {
    return LEAST_TURN_NS;
  }

  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    synchronized (lock) {
      return guarded(
          () -> {
            if (!MemoryTerms.tryChange(grant, slots, request)) {
              return false;
            }
            grant.terms(request, entitledPermille);
            return true;
          },
          false);
    }
  }

  @Override
  public void check(Path executable) {
    ProgramCheck.check(executable);
  }

  @Override
  public Map<String, String> environment() {
    return environment;
  }

  @Override
  public boolean mayAttachYet() {
    return programs.anyLives(); // without the lock: it may take a while
  }

  @Override
  public Optional<MemoryMover> mover() {
    return MovableMemory.of(this, grant, slots, owner);
  }

  @Override
  public void close() {
    synchronized (lock) {
      if (ended) {
        return;
      }
      gpuTimeNs(owner.clock().nanoTime());
      counts();
      revoke();
      report.close();
    }
    owner.forget(id);
  }

  /** Leaves the lease as it is, for the next holder of the seat. */
  void release() {
    synchronized (lock) {
      ended = true; // in this JVM: a late reader must not take a closed page for a lost one
      report.close();
    }
  }

  /** Ends the lease: no work can be started any more. */
  private void revoke() {
    ended = true;
    grant.word(GRANT_REVOKED);
    grant.wake(owner.wake());
    slots.close();
    slots.connections().forEach(SeatSlot.Socket::close);
  }

  /**
   * Assigns a slot to a process, or answers why not. The listener is called after the answer was
   * sent, by {@link #announce}: the process may be this one, and its thread may hold a lock that
   * the listener waits for.
   */
  HookMessage hello(HookMessage hello, HookConnection connection) {
    HookMessage answer;
    SeatSlot.Socket replaced;
    synchronized (lock) {
      if (ended) {
        return HookMessage.welcome(NO_SLOT, STATUS_ENDED, "the virtual GPU has ended");
      }
      long now = owner.clock().nanoTime();
      boolean fresh = hello.slot() == NO_SLOT;
      if (!secrets.admits(hello, fresh)) {
        return HookMessage.noSecret(fresh);
      }
      String refusal = fresh ? slots.refusal(hello) : null;
      if (refusal != null) {
        return HookMessage.welcome(NO_SLOT, STATUS_BAD, refusal);
      }
      Optional<SeatSlot> found =
          guarded(
              () -> Optional.ofNullable(fresh ? slots.attach(hello, now) : slots.attached(hello)),
              Optional.empty());
      if (found.isEmpty()) {
        return HookMessage.noSlot(fresh);
      }
      SeatSlot slot = found.get();
      replaced = slot.connection;
      slot.connection = connection;
      slot.welcomed = false;
      connection.attached(this, slot);
      grant.beat(now);
      answer = HookMessage.welcome(slot.number, STATUS_OK, secrets.ofSlot(slot.number, hello));
    }
    if (replaced != null && replaced != connection) {
      replaced.detached();
      replaced.close();
    }
    return answer;
  }

  /** Notes that a process was sent its WELCOME, and reports it to the listener. */
  void announce(SeatSlot slot) {
    step(() -> slot.welcomed = true);
  }

  /** Handles a message that a process became busy, became idle, or waits. */
  void heard(SeatSlot slot, boolean wants) {
    int events;
    synchronized (lock) {
      long now = owner.clock().nanoTime();
      slot.heard(now, wants);
      guarded(() -> done(slots::refresh), false);
      events = evaluate();
      guarded(() -> done(() -> express.announce(slot, now)), false);
      if (wants && watch.worked()) {
        events |= WorkWatch.WANTED;
      }
    }
    teller.events(events, watch.processes());
  }

  /** Handles a process that left and lives on: its memory is no longer charged. */
  void left(SeatSlot slot) {
    step(() -> slots.recover(slot, owner.clock().nanoTime()));
  }

  /** Handles the closed socket of a process. */
  void disconnected(SeatSlot slot, SeatSlot.Socket connection) {
    step(() -> slots.disconnected(slot, connection, owner.clock().nanoTime()));
  }

  private void step(Runnable step) {
    int events;
    synchronized (lock) {
      guarded(() -> done(step), false);
      guarded(() -> done(slots::refresh), false);
      events = evaluate();
    }
    teller.events(events, watch.processes());
  }

  /**
   * Checks its processes, and renews the seat's heartbeat.
   *
   * @param check whether to check also one process that seems well
   */
  void tick(long nowNs, boolean check) {
    int events;
    List<String> suspicions;
    Map<String, Long> yields;
    synchronized (lock) {
      if (ended) {
        return;
      }
      grant.beat(nowNs);
      boolean dueToLook = check || slots.isAnnounced() || nowNs - lookedNs >= lookPauseNs();
      if (!dueToLook && (isIdle() || isHeld())) {
        return;
      }
      lookedNs = nowNs;
      guarded(() -> slots.look(nowNs, grant.isOpen(), check), false);
      events = evaluate();
      suspicions = slots.takeSuspicions();
      yields = express.takeYields();
    }
    teller.events(events, watch.processes());
    teller.suspicions(suspicions);
    teller.yields(yields);
  }

  /** {@return whether its gate is shut, and the work that was on the GPU has ended} */
  private boolean isHeld() {
    return !grant.isOpen() && !watch.isDraining() && !slots.isWatched();
  }

  private long lookPauseNs() {
    return grant.isResting() ? RESTING_LOOK_NS : IDLE_LOOK_NS;
  }

  /** {@return whether the lease needs attention: it has processes and has not ended} */
  boolean isAttached() {
    synchronized (lock) {
      return slots.count() != 0 && !ended;
    }
  }

  /** {@return whether no process has work, and the end of each would be noticed by its socket} */
  boolean isIdle() {
    synchronized (lock) {
      return !watch.worked() && !watch.isDraining() && !slots.isWatched();
    }
  }

  /**
   * Tells the processes whether to announce the start of work. Work that began before they know is
   * found at the next {@link #tick}, which looks at once.
   *
   * @return whether that is a change
   */
  boolean rests(boolean rests) {
    synchronized (lock) {
      if (ended || grant.isResting() == rests) {
        return false;
      }
      boolean done = guarded(() -> done(() -> grant.resting(rests)), false);
      lookedNs -= lookPauseNs();
      return done;
    }
  }

  /** {@return how many of its processes have a socket here} */
  int connected() {
    synchronized (lock) {
      return slots.connections().size();
    }
  }

  boolean isDraining() {
    synchronized (lock) {
      return watch.isDraining();
    }
  }

  /**
   * {@return the events for the listener, from what was read last; a lease that has ended is idle}
   */
  private int evaluate() {
    boolean works = !ended && slots.hasWork();
    boolean busy = works && slots.isBusy();
    return watch.take(
        slots.count(),
        works,
        busy,
        slots.wentOn(),
        slots.allToldIdleness(),
        owner.clock().nanoTime());
  }

  private static boolean done(Runnable step) {
    step.run();
    return true;
  }

  @Override
  void giveUp(Throwable cause) {
    if (!ended) {
      log.warn(
          "a tenant truncated its report page; its virtual GPU was ended: lease={} ({})",
          id,
          cause.getMessage());
      revoke();
      owner.forget(id);
    }
  }
}
