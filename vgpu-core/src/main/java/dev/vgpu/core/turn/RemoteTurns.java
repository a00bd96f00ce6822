package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.TurnStepper;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Represents one GPU's scheduler in a process that does not hold the seat. It forwards which
 * virtual GPUs want a turn, and opens and shuts gates as ordered. Guarded by the seat's lock.
 *
 * <p>A turn is given back without an order when the tenant has been idle for a linger while others
 * wait. Its gate is shut first, so that the next call counts as wanting a turn.
 */
public final class RemoteTurns implements TurnStepper {
  /** Reports to the deciding process. The methods must not block. */
  public interface Reports {
    /**
     * A call waits.
     *
     * @param lease the virtual GPU
     */
    void want(String lease);

    /**
     * No call waits any more, and none was admitted.
     *
     * @param lease the virtual GPU
     */
    void idle(String lease);

    /**
     * A turn has ended.
     *
     * @param lease the virtual GPU
     * @param turn the turn's number
     * @param waits whether calls wait for the next turn
     * @param usage the use until now
     */
    void drained(String lease, long turn, boolean waits, UsageReading usage);

    /** {@return whether the deciding process was stopped, so that it cannot answer} */
    boolean isStopped();
  }

  /**
   * The state of a virtual GPU when its process connects to another seat.
   *
   * @param turn the number of its last turn
   * @param runs whether a call of that turn is still running
   * @param waits whether calls wait
   * @param usage the use until now
   */
  public record Standing(long turn, boolean runs, boolean waits, UsageReading usage) {}

  /** How the previous scheduler left a gate. */
  public enum Before {
    /** Shut, and no call runs. */
    SHUT,
    /** Open, or calls are still running. */
    OPEN
  }

  private enum State {
    SHUT,
    OPEN,
    /** Shut, while the last calls end. */
    DRAINING
  }

  private static final long NEVER = TurnStepper.NEVER;

  /** How long to wait for a turn before checking whether the deciding process can answer. */
  private static final long SILENCE_NS = 10_000_000;

  private final GpuSeat seat;
  private final long lingerNs;
  private final List<Tenant> lingering = new ArrayList<>();
  private final List<Tenant> waiting = new ArrayList<>();
  private @Nullable Reports reports;
  private long silenceCheckNs = NEVER;

  /**
   * Creates one that is not connected.
   *
   * @param seat the GPU's seat
   * @param lingerNs how long an idle tenant keeps its turn while others wait
   */
  public RemoteTurns(GpuSeat seat, long lingerNs) {
    this.seat = seat;
    this.lingerNs = lingerNs;
  }

  /**
   * Sets where reports go from now on.
   *
   * @param to the deciding process; null if none answers, and the last orders stay in force
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

  /** Lets waiting tenants continue if the deciding process was stopped, until it answers again. */
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
     * Creates a tenant without a turn, and listens to the gate.
     *
     * @param id the virtual GPU's id
     * @param gate the gate for its calls
     */
    public Tenant(String id, InProcessGate gate) {
      this(id, gate, Before.SHUT);
    }

    /**
     * Creates a tenant whose gate may be open, and listens to the gate.
     *
     * @param id the virtual GPU's id
     * @param gate the gate for its calls
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

    /** {@return whether it reports where these turns report} */
    public boolean isOf(RemoteTurns turns) {
      return RemoteTurns.this == turns;
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

    /** Takes a turn that no scheduler gave. */
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
        gate.open(); // a call has just arrived
        return 0;
      }
      tellDrained();
      return 1;
    }

    /**
     * Starts a turn.
     *
     * @param number the turn's number
     * @param othersWait whether to report idleness
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
     * Ends a turn.
     *
     * @param number the turn's number
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
     * @param number the turn's number
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
     * Sets whether to report idleness.
     *
     * @param othersWait whether to report it
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
     * Gives its state to the next deciding process, before that sends any order. This ends its
     * turn: a running call continues, a new one waits.
     *
     * @param to receives the state, with the seat held; must not block
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
