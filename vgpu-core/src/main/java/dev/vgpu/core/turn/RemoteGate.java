package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.TurnGate;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The gate of a virtual GPU whose calls are made in another process: opened and shut by messages to
 * it, which it answers. Each opening is a numbered turn, so that an answer that has crossed a later
 * order is known as such. Guarded by the seat.
 *
 * <p>A client gives its turn back by itself when it has become idle while others wait; until then
 * its work counts as running, and what it used is estimated between two reports; by at most {@code
 * mostGuessedNs} where it would not tell idleness. A wrong guess is set right by the next report:
 * what counts is the sum.
 */
public final class RemoteGate implements TurnGate {
  /** What is told to the process; must not block. */
  public interface Orders {
    /**
     * Has the turn.
     *
     * @param lease whose gate
     * @param turn the turn's number
     * @param contended whether others wait
     */
    void open(String lease, long turn, boolean contended);

    /**
     * Has the turn no more.
     *
     * @param lease whose gate
     * @param turn the turn's number
     */
    void shut(String lease, long turn);

    /**
     * Running calls are to end soon.
     *
     * @param lease whose
     * @param turn the turn's number
     */
    void preempt(String lease, long turn);

    /**
     * Whether idleness is to be told.
     *
     * @param lease whose gate
     * @param contended whether others wait
     */
    void contended(String lease, boolean contended);
  }

  private final String id;
  private final GpuSeat seat;
  private final long mostGuessedNs;
  private final BooleanSupplier stopped;
  private @Nullable Orders orders;
  private @Nullable TenantGate tenant;

  private boolean open;
  private boolean clientOpen;
  private boolean abandoned;
  private boolean work;
  private boolean contended;
  private boolean limited;
  private long turn;
  private long reportedNs;
  private long sinceNs;
  private long toldNs;
  private UsageReading usage = UsageReading.NONE;

  /**
   * Makes one, shut, of a process that is not connected.
   *
   * @param id the virtual GPU's name
   * @param seat the GPU's
   * @param mostGuessedNs how much use is assumed at most between two reports
   * @param stopped says whether its process cannot go on now
   */
  public RemoteGate(String id, GpuSeat seat, long mostGuessedNs, BooleanSupplier stopped) {
    this.id = id;
    this.seat = seat;
    this.mostGuessedNs = mostGuessedNs;
    this.stopped = stopped;
  }

  /**
   * Says what stands for it towards the scheduler.
   *
   * @param tenant the whole virtual GPU
   * @param limited whether it is held back even while nobody else waits, so that idleness matters
   */
  public void belongTo(TenantGate tenant, boolean limited) {
    seat.take();
    this.tenant = tenant;
    this.limited = limited;
    seat.leave();
  }

  // ---- the scheduler's side, with the seat held

  @Override
  public void open() {
    open = true;
    give();
  }

  private void give() {
    if (orders != null && work && !clientOpen) {
      clientOpen = true;
      abandoned = false;
      turn++;
      sinceNs = seat.clock().nanoTime();
      orders.open(id, turn, contended || limited);
    }
  }

  @Override
  public boolean shut() {
    open = false;
    if (clientOpen && orders != null) {
      orders.shut(id, turn);
    }
    return !clientOpen;
  }

  @Override
  public int preempt() {
    if (orders != null) {
      orders.preempt(id, turn);
    }
    return 0; // how many it can ask to end is known there
  }

  @Override
  public boolean hasWork() {
    return work;
  }

  @Override
  public boolean mayBeAbandoned() {
    return true;
  }

  @Override
  public boolean isAbandoned() {
    if (clientOpen && stopped.getAsBoolean()) {
      clientOpen = false;
      work = false;
      abandoned = true; // what it says of that turn when it goes on still counts
    }
    return !clientOpen;
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    long guessNs = clientOpen && work ? Math.max(0, nowNs - sinceNs) : 0;
    // Where idleness is told, what was not told is use: a turn must not last for ever because its
    // process has been stopped and reports nothing.
    boolean idlenessIsTold = contended || limited;
    toldNs =
        Math.max(
            toldNs, reportedNs + (idlenessIsTold ? guessNs : Math.min(guessNs, mostGuessedNs)));
    return toldNs;
  }

  @Override
  public void contended(boolean contended) {
    boolean tell = this.contended != contended && !limited && clientOpen;
    if (tell && contended) {
      sinceNs = seat.clock().nanoTime(); // it may have been idle until now without a word
    }
    this.contended = contended;
    if (tell && orders != null) {
      orders.contended(id, contended);
    }
  }

  // ---- the process's side; all take the seat

  /** A call waits there. */
  public void wanted() {
    seat.take();
    try {
      work = true;
      if (open) {
        give();
      }
      if (tenant != null) {
        tenant.wanted();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** No call waits there any more, and none had been let in. */
  public void idle() {
    seat.take();
    try {
      if (!clientOpen) {
        work = false;
        tellDrained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * A turn has ended there.
   *
   * @param ended its number
   * @param waits whether calls wait for the next
   * @param reading what was used until now
   */
  public void drained(long ended, boolean waits, UsageReading reading) {
    seat.take();
    try {
      report(reading);
      if (abandoned && ended == turn) {
        abandoned = false;
        work = waits;
        if (waits && tenant != null) {
          tenant.wanted();
        }
      } else if (clientOpen && ended == turn) {
        clientOpen = false;
        work = waits;
        tellDrained();
        if (open) {
          give(); // the end of an earlier turn came after the beginning of this one
        }
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * Notes what was used until now.
   *
   * @param reading as the process measured it
   */
  public void reported(UsageReading reading) {
    seat.take();
    try {
      report(reading);
    } finally {
      seat.leave();
    }
  }

  private void report(UsageReading reading) {
    usage = reading;
    reportedNs = Math.max(reportedNs, reading.gpuTimeNs());
    sinceNs = seat.clock().nanoTime();
  }

  /**
   * The process is connected, for the first time or again.
   *
   * @param to how it is told
   * @param lastTurn the number of its last turn
   * @param runs whether a call of that turn runs still; its end is told as that of any turn
   * @param waits whether calls wait
   * @param reading what was used until now
   */
  public void connected(
      Orders to, long lastTurn, boolean runs, boolean waits, UsageReading reading) {
    seat.take();
    try {
      orders = to;
      turn = Math.max(turn, lastTurn);
      report(reading);
      toldNs = reportedNs;
      boolean ran = clientOpen;
      clientOpen = runs;
      work = waits || runs;
      if (ran && !runs) {
        tellDrained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** The process cannot be told anything for now. */
  public void disconnected() {
    seat.take();
    orders = null;
    seat.leave();
  }

  /** The virtual GPU is closed there, or the process is dead: nothing runs and nothing waits. */
  public void ended() {
    seat.take();
    try {
      orders = null;
      clientOpen = false;
      work = false;
      if (tenant != null) {
        tenant.ended();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** {@return what the process last reported} */
  public UsageReading usage() {
    seat.take();
    try {
      return usage;
    } finally {
      seat.leave();
    }
  }

  private void tellDrained() {
    if (tenant != null) {
      tenant.drained();
    }
  }
}
