package dev.vgpu.simulation;

import static dev.vgpu.simulation.Workload.NEVER;
import static java.util.Objects.requireNonNull;

import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.spi.GpuWork;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * A tenant's gate in virtual time, with the programs behind it: a JVM that makes calls, or
 * processes under the hook that launch kernels ahead, as its {@link GateModel} says. Not
 * thread-safe.
 */
public final class VirtualGate implements TurnGate {
  /**
   * How long before its work ends the next kernel is launched, so that the GPU does not run dry.
   */
  private static final long SLACK_NS = 250_000;

  private final String id;
  private final GateModel model;
  private final Workload work;
  private @Nullable VirtualDevice device;
  private boolean urgent;
  private int number;

  private boolean open;
  private boolean contended;
  private boolean obeys = true;
  private boolean held;

  /** The kernels that were launched and have not begun, in order. */
  private final ArrayDeque<Long> launched = new ArrayDeque<>();

  private long kernelNs;
  private long remainingNs = NEVER;
  private boolean cancelled;
  private long servedNs;
  private long measuredNs;
  private long markNs = NEVER;
  private long endedNs;

  private boolean works;
  private boolean pausesAreShort;
  private boolean onLane;
  private long pausedSinceNs;
  private long resumeAtNs = NEVER;
  private long idleAtNs = NEVER;
  private long laneClearAtNs = NEVER;
  private long wantedAtNs = NEVER;
  private long drainedAtNs = NEVER;
  private boolean tellsWanted;
  private boolean tellsDrained;

  private int opened;
  private int preempted;
  private int finished;

  /**
   * Creates a shut gate for calls without any cost of enforcement.
   *
   * @param id the tenant's id
   * @param backlogCallNs the length of the calls of an endless supply; 0 means only queued calls
   * @param cancelTakesNs how long a cancelled call still runs; negative if it cannot be cancelled
   */
  public VirtualGate(String id, long backlogCallNs, long cancelTakesNs) {
    this(id, GateModel.ideal(cancelTakesNs), new CallQueue(backlogCallNs));
  }

  /**
   * Creates a shut gate.
   *
   * @param id the tenant's id
   * @param model how its work is enforced
   * @param work what its programs do; not shared with another gate
   */
  public VirtualGate(String id, GateModel model, Workload work) {
    this.id = requireNonNull(id, "id");
    this.model = requireNonNull(model, "model");
    this.work = requireNonNull(work, "work");
  }

  void attach(VirtualDevice to, int gateNumber, boolean isUrgent) {
    device = to;
    number = gateNumber;
    urgent = isUrgent;
    works = work.hasKernel();
    to.add(this);
    if (works) {
      wantedAtNs = to.nowNs() + model.tellNs();
    }
    laneChanged();
  }

  /** Ends its programs: none of its work is left on the GPU, and none follows. */
  void end() {
    device().remove(this);
    if (onLane) {
      onLane = false;
      device().urgent(false);
    }
    open = false;
    remainingNs = NEVER;
    launched.clear();
  }

  private VirtualDevice device() {
    return requireNonNull(device, "not on a node");
  }

  private long nowNs() {
    return device == null ? 0 : device.nowNs();
  }

  /**
   * Adds a call to a gate with a queue of calls.
   *
   * @param callNs how long it runs
   */
  public void queue(long callNs) {
    ((CallQueue) work).queue(callNs);
  }

  /** {@return the tenant's id} */
  public String id() {
    return id;
  }

  /** {@return the tenant's number on its node} */
  public int number() {
    return number;
  }

  /** {@return how often it was opened} */
  public int opened() {
    return opened;
  }

  /** {@return how often its running work was asked to end} */
  public int preempted() {
    return preempted;
  }

  /** {@return how many calls or kernels have ended} */
  public int finished() {
    return finished;
  }

  /** {@return how long the GPU really worked for it, in nanoseconds} */
  public long servedNs() {
    return servedNs;
  }

  /** {@return whether work may start} */
  public boolean isOpen() {
    return open;
  }

  /** {@return whether a call or kernel is on the GPU} */
  public boolean isRunning() {
    return remainingNs != NEVER;
  }

  /** {@return whether it is held back by the lane} */
  public boolean isHeld() {
    return held;
  }

  // ---- the device's side

  /** Whether both are in one process: the GPU need not change its context between them. */
  boolean sharesContext(VirtualGate other) {
    return this == other || (model.isInSeat() && other.model.isInSeat());
  }

  long remainingNs() {
    return remainingNs;
  }

  void serve(long fromNs, long toNs) {
    if (markNs == NEVER) {
      markNs = fromNs;
    }
    servedNs += toNs - fromNs;
    remainingNs -= toNs - fromNs;
  }

  /** Called when the running kernel has ended. */
  void kernelEnded() {
    long now = nowNs();
    measuredNs += now - markNs;
    markNs = now;
    endedNs = now;
    remainingNs = NEVER;
    finished++;
    long pauseNs = cancelled ? 0 : work.kernelEnded(now);
    cancelled = false;
    Long next = launched.poll();
    if (next != null) {
      run(next);
      return;
    }
    boolean more = work.hasKernel();
    if (more && pauseNs == 0 && open && !held) {
      run(work.takeKernel());
      return;
    }
    markNs = NEVER;
    if (onLane) {
      laneClearAtNs = open ? now + model.laneLingerNs() : now;
    }
    if (more && pauseNs > 0) {
      resumeAtNs = now + pauseNs;
    }
    if (!open) {
      drainedAtNs = now + model.tellNs();
    }
    boolean pauses = !more || pauseNs > model.shortIdleNs();
    if (pauses) {
      pausedSinceNs = now;
      idleAtNs = now + (pausesAreShort && open ? model.shortIdleNs() : 0);
    }
  }

  private void run(long lengthNs) {
    kernelNs = lengthNs;
    remainingNs = lengthNs;
    laneClearAtNs = NEVER;
    if (urgent && model.lane() && !onLane) {
      onLane = true;
      device().urgent(true);
    }
    if (!model.tellsInLumps() && markNs == NEVER) {
      markNs = nowNs();
    }
  }

  /** Whether it stops others by the lane. */
  boolean isUrgent() {
    return urgent && model.lane();
  }

  void laneChanged() {
    boolean was = held;
    held = !urgent && model.lane() && obeys && device().isLaneBusy();
    if (held && !was) {
      launchAhead();
    } else if (was && !held) {
      resume();
    }
  }

  /** Starts the waiting work, once its threads have woken. */
  private void resume() {
    if (open && !held && !isRunning() && resumeAtNs == NEVER && work.hasKernel()) {
      if (model.wakeNs() == 0) {
        run(work.takeKernel());
      } else {
        resumeAtNs = nowNs() + model.wakeNs();
      }
    }
  }

  /** What was launched before the gate was shut is already on its way to the GPU. */
  private void launchAhead() {
    long boundNs = boundNs();
    if (!isRunning() || boundNs == 0) {
      return;
    }
    long aheadNs = remainingNs;
    for (Long kernel : launched) {
      aheadNs += kernel;
    }
    long roomNs = Math.max(boundNs - kernelNs, SLACK_NS);
    while (aheadNs <= roomNs && work.hasKernel()) {
      long next = work.takeKernel();
      launched.add(next);
      aheadNs += next;
    }
  }

  private long boundNs() {
    if (!urgent && model.lane() && obeys && device().hasUrgent()) {
      return model.inFlightYieldingNs();
    }
    return contended ? model.inFlightNs() : model.inFlightAloneNs();
  }

  // ---- timers

  long timerNs() {
    return Math.min(
        Math.min(Math.min(resumeAtNs, idleAtNs), Math.min(laneClearAtNs, work.nextArrivalNs())),
        Math.min(wantedAtNs, drainedAtNs));
  }

  void fire() {
    long now = nowNs();
    if (laneClearAtNs <= now) {
      laneClearAtNs = NEVER;
      onLane = false;
      device().urgent(false);
    }
    if (work.nextArrivalNs() <= now) {
      long workNs = work.arrive(now);
      if (workNs > 0) {
        device().observer().arrived(this, workNs, now);
      }
      arrived();
    }
    if (resumeAtNs <= now) {
      resumeAtNs = NEVER;
      if (!isRunning() && work.hasKernel()) {
        begin();
      }
    }
    if (idleAtNs <= now) {
      idleAtNs = NEVER;
      idle(now);
    }
    if (wantedAtNs <= now) {
      wantedAtNs = NEVER;
      tellsWanted = true;
      device().stop();
    }
    if (drainedAtNs <= now) {
      drainedAtNs = NEVER;
      tellsDrained = true;
      device().stop();
    }
  }

  /** Called when work has arrived. */
  void arrived() {
    if (!isRunning() && resumeAtNs == NEVER && work.hasKernel()) {
      begin();
    }
  }

  /** It has work again after a pause or after having none: runs it, or waits. */
  private void begin() {
    long now = nowNs();
    if (idleAtNs != NEVER) {
      idleAtNs = NEVER;
      pausesAreShort = true;
    } else if (!works) {
      works = true;
      pausesAreShort = now - pausedSinceNs < model.shortIdleNs();
      wantedAtNs = now + model.tellNs();
    }
    if (open && !held) {
      run(work.takeKernel());
    }
  }

  private void idle(long now) {
    works = false;
    pausesAreShort = false;
    if (!open || contended) {
      drainedAtNs = Math.min(drainedAtNs, now + model.tellNs());
    }
  }

  boolean takeWanted() {
    boolean told = tellsWanted;
    tellsWanted = false;
    return told;
  }

  boolean takeDrained() {
    boolean told = tellsDrained;
    tellsDrained = false;
    return told && (!open || (contended && !hasWork()));
  }

  // ---- the scheduler's side

  @Override
  public void open() {
    open = true;
    opened++;
    drainedAtNs = NEVER;
    tellsDrained = false;
    resume();
  }

  @Override
  public boolean shut() {
    if (open) {
      open = false;
      launchAhead();
    }
    if (!isRunning() && onLane) {
      laneClearAtNs = nowNs();
    }
    return !isRunning();
  }

  @Override
  public int preempt() {
    preempted++;
    if (!isRunning() || model.cancelTakesNs() < 0 || cancelled) {
      return 0;
    }
    cancelled = true;
    work.cancelled(kernelNs);
    remainingNs = Math.min(remainingNs, model.cancelTakesNs());
    return 1;
  }

  @Override
  public boolean hasWork() {
    return isRunning() || works;
  }

  @Override
  public long gpuTimeNs(long atNs) {
    boolean tells = isRunning() && !model.tellsInLumps() && markNs != NEVER;
    return measuredNs + (tells ? atNs - markNs : 0);
  }

  @Override
  public long busyUntilNs() {
    return model.mayOverlap() ? endedNs : -1;
  }

  @Override
  public void contended(boolean isContended) {
    contended = isContended;
  }

  @Override
  public long leastTurnNs() {
    return model.leastTurnNs();
  }

  @Override
  public boolean yieldsByItself() {
    return model.lane();
  }

  @Override
  public void yielding(boolean obey) {
    obeys = obey;
    if (device != null) {
      laneChanged();
    }
  }

  @Override
  public GpuWork work() {
    return new GpuWork(finished, 0, 0, 0, 0);
  }

  @Override
  public boolean mayOverlap() {
    return model.mayOverlap();
  }
}
