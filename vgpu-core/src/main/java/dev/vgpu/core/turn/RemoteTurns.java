package dev.vgpu.core.turn;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnStepper;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Stands for one GPU's scheduler in a process that does not hold the seat: passes on who wants a
 * turn, and opens and shuts gates as it is told. Guarded by the seat.
 *
 * <p>A turn is given back by itself when the tenant has been idle for a linger while others wait;
 * its gate is shut first, so that the next call is seen as wanting a turn.
 */
public final class RemoteTurns implements TurnStepper {
  /** What is told to the process that decides; must not block. */
  public interface Reports {
    /**
     * A call waits.
     *
     * @param lease of which virtual GPU
     */
    void want(String lease);

    /**
     * No call waits any more, and none was let in.
     *
     * @param lease of which virtual GPU
     */
    void idle(String lease);

    /**
     * A turn has ended.
     *
     * @param lease whose
     * @param turn its number
     * @param waits whether calls wait for the next
     * @param usage what was used until now
     */
    void drained(String lease, long turn, boolean waits, UsageReading usage);

    /** {@return whether the process that decides was stopped, so that it cannot answer} */
    boolean isStopped();
  }

  /**
   * How a virtual GPU stands when its process comes to another seat.
   *
   * @param turn the number of its last turn
   * @param runs whether a call of that turn runs still
   * @param waits whether calls wait
   * @param usage what was used until now
   */
  public record Standing(long turn, boolean runs, boolean waits, UsageReading usage) {}

  /** How a gate was left by the one who decided before. */
  public enum Before {
    /** Shut, and no call runs. */
    SHUT,
    /** Open, or calls run still. */
    OPEN
  }

  private enum State {
    SHUT,
    OPEN,
    /** Shut, while the last calls end. */
    DRAINING
  }

  private static final long NEVER = ShareScheduler.NEVER;

  /** How long a turn is waited for before it is asked whether anybody is there to give it. */
  private static final long SILENCE_NS = 10_000_000;

  private final GpuSeat seat;
  private final long lingerNs;
  private final List<Tenant> lingering = new ArrayList<>();
  private final List<Tenant> waiting = new ArrayList<>();
  private @Nullable Reports reports;
  private long silenceCheckNs = NEVER;

  /**
   * Makes one that is not connected.
   *
   * @param seat the GPU's
   * @param lingerNs how long an idle tenant keeps its turn while others wait
   */
  public RemoteTurns(GpuSeat seat, long lingerNs) {
    this.seat = seat;
    this.lingerNs = lingerNs;
  }

  /**
   * Says to whom it speaks from now on.
   *
   * @param to the process that decides; null: nobody answers, and the last orders hold
   */
  public void connect(@Nullable Reports to) {
    seat.take();
    reports = to;
    seat.stepAndLeave();
  }

  @Override
  public int doWork(long nowNs) {
    if (reports == null) {
      return 0;
    }
    int work = 0;
    for (int i = lingering.size() - 1; i >= 0; i--) {
      if (lingering.get(i).lingerUntilNs <= nowNs) {
        work += lingering.remove(i).lingered();
      }
    }
    return work + breakSilence(nowNs);
  }

  /** Lets those go on who wait for a process that was stopped, until it speaks again. */
  private int breakSilence(long nowNs) {
    waiting.removeIf(tenant -> tenant.state != State.SHUT || !tenant.told);
    if (waiting.isEmpty()) {
      silenceCheckNs = NEVER;
      return 0;
    }
    if (silenceCheckNs == NEVER) {
      silenceCheckNs = nowNs + SILENCE_NS;
      return 0;
    }
    if (nowNs < silenceCheckNs) {
      return 0;
    }
    silenceCheckNs = nowNs + SILENCE_NS;
    if (reports == null || !reports.isStopped()) {
      return 0;
    }
    List<Tenant> going = List.copyOf(waiting);
    going.forEach(Tenant::goOn);
    return going.size();
  }

  @Override
  public long nextWakeNs() {
    long nextNs = NEVER;
    if (reports != null) {
      nextNs = silenceCheckNs;
      for (Tenant tenant : lingering) {
        nextNs = Math.min(nextNs, tenant.lingerUntilNs);
      }
    }
    return nextNs;
  }

  /** One virtual GPU. */
  public final class Tenant implements GateListener {
    private final String id;
    private final InProcessGate gate;
    private State state = State.SHUT;
    private long turn;
    private boolean told;
    private boolean contended;
    private long lingerUntilNs = NEVER;

    /**
     * Makes one that has no turn, and tells the gate.
     *
     * @param id its name
     * @param gate for its calls
     */
    public Tenant(String id, InProcessGate gate) {
      this(id, gate, Before.SHUT);
    }

    /**
     * Makes one whose gate may be open, and tells the gate.
     *
     * @param id its name
     * @param gate for its calls
     * @param before how the gate was left
     */
    public Tenant(String id, InProcessGate gate, Before before) {
      this.id = id;
      this.gate = gate;
      seat.take();
      state = before == Before.OPEN ? State.OPEN : State.SHUT;
      gate.listen(this);
      seat.leave();
    }

    @Override
    public void wanted() {
      stopLingering();
      if (state == State.SHUT && !told && reports != null) {
        told = true;
        waiting.add(this);
        reports.want(id);
      }
    }

    @Override
    public void drained() {
      switch (state) {
        case DRAINING -> tellDrained();
        case OPEN -> {
          if (contended && !gate.hasWork()) {
            linger();
          }
        }
        case SHUT -> {
          if (told && !gate.hasWork() && reports != null) {
            told = false;
            reports.idle(id);
          }
        }
      }
    }

    @Override
    public void ended() {
      state = State.SHUT;
      stopLingering();
    }

    @Override
    public @Nullable String tryResize(VirtualGpuRequest request) {
      return null;
    }

    private void tellDrained() {
      state = State.SHUT;
      told = gate.hasWork();
      if (told) {
        waiting.add(this);
      }
      if (reports != null) {
        reports.drained(id, turn, told, gate.usageWithSeat());
      }
    }

    private void linger() {
      if (lingerUntilNs == NEVER) {
        lingering.add(this);
      }
      lingerUntilNs = seat.clock().nanoTime() + lingerNs;
    }

    private void stopLingering() {
      if (lingerUntilNs != NEVER) {
        lingerUntilNs = NEVER;
        lingering.remove(this);
      }
    }

    /** Has a turn that nobody gave. */
    private void goOn() {
      told = false;
      state = State.OPEN;
      contended = true;
      gate.contended(true);
      gate.open();
    }

    private int lingered() {
      lingerUntilNs = NEVER;
      if (state != State.OPEN || gate.hasWork()) {
        return 0;
      }
      if (!gate.shut()) {
        gate.open(); // a call has come just now
        return 0;
      }
      tellDrained();
      return 1;
    }

    /**
     * Has the turn.
     *
     * @param number the turn's
     * @param othersWait whether idleness is to be told
     */
    public void open(long number, boolean othersWait) {
      seat.take();
      try {
        turn = number;
        told = false;
        state = State.OPEN;
        contended = othersWait;
        gate.contended(othersWait);
        gate.open();
        if (othersWait && !gate.hasWork()) {
          linger();
        }
      } finally {
        seat.stepAndLeave();
      }
    }

    /**
     * Has the turn no more.
     *
     * @param number the turn's
     */
    public void shut(long number) {
      seat.take();
      try {
        if (state == State.OPEN && number == turn) {
          stopLingering();
          state = State.DRAINING;
          if (gate.shut()) {
            tellDrained();
          }
        }
      } finally {
        seat.stepAndLeave();
      }
    }

    /**
     * Asks running calls to end.
     *
     * @param number the turn's
     */
    public void preempt(long number) {
      seat.take();
      try {
        if (state == State.DRAINING && number == turn) {
          int ignored = gate.preempt();
        }
      } finally {
        seat.stepAndLeave();
      }
    }

    /**
     * Whether idleness is to be told.
     *
     * @param othersWait whether it is
     */
    public void contended(boolean othersWait) {
      seat.take();
      try {
        contended = othersWait;
        gate.contended(othersWait);
        if (othersWait && state == State.OPEN && !gate.hasWork()) {
          linger();
        }
      } finally {
        seat.stepAndLeave();
      }
    }

    /**
     * Tells how it stands to the next process that decides, before it is told anything else. Its
     * turn has ended by that: a call that runs goes on, a new one waits.
     *
     * @param to is told, with the seat held; must not block
     */
    public void claim(Consumer<Standing> to) {
      seat.take();
      try {
        stopLingering();
        if (state == State.OPEN) {
          state = gate.shut() ? State.SHUT : State.DRAINING;
        }
        told = gate.hasWork();
        if (told) {
          waiting.add(this);
        }
        to.accept(new Standing(turn, state == State.DRAINING, told, gate.usageWithSeat()));
      } finally {
        seat.leave();
      }
    }
  }
}
