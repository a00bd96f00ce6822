package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.TurnGate;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The gate of a virtual GPU whose calls are made in another process. It is opened and shut by
 * messages to that process, which answers them. Each opening is a numbered turn, so that an answer
 * that crossed a later order is recognised. Guarded by the seat's lock.
 *
 * <p>A client gives its turn back by itself when it has become idle while others wait. Until then
 * its work counts as running, and its use between two reports is estimated. If the client would not
 * report idleness, the estimate is limited to {@code mostGuessedNs}. The next report corrects a
 * wrong estimate, because reports are totals.
 */
public final class RemoteGate implements TurnGate {
  /** Orders to the process. The methods must not block. */
  public interface Orders {
    /**
     * Gives the process the turn.
     *
     * @param lease the virtual GPU
     * @param turn the turn's number
     * @param contended whether others wait
     */
    void open(String lease, long turn, boolean contended);

    /**
     * Ends the turn.
     *
     * @param lease the virtual GPU
     * @param turn the turn's number
     */
    void shut(String lease, long turn);

    /**
     * Asks running calls to end soon.
     *
     * @param lease the virtual GPU
     * @param turn the turn's number
     */
    void preempt(String lease, long turn);

    /**
     * Sets whether the process reports idleness.
     *
     * @param lease the virtual GPU
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
   * Creates a shut gate of a process that is not connected.
   *
   * @param id the virtual GPU's id
   * @param seat the GPU's seat
   * @param mostGuessedNs the most use that is assumed between two reports
   * @param stopped tells whether the process cannot continue now
   */
  public RemoteGate(String id, GpuSeat seat, long mostGuessedNs, BooleanSupplier stopped) {
    this.id = id;
    this.seat = seat;
    this.mostGuessedNs = mostGuessedNs;
    this.stopped = stopped;
  }

  /**
   * Sets the tenant that represents this gate to the scheduler.
   *
   * @param tenant the tenant of the virtual GPU
   * @param limited whether it is held back even while no other tenant waits, so that idleness
   *     matters
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
    return 0; // only the process knows how many calls it can ask to end
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
      abandoned = true; // what it later reports about that turn still counts
    }
    return !clientOpen;
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    long guessNs = clientOpen && work ? Math.max(0, nowNs - sinceNs) : 0;
    // If idleness is reported, unreported time is use. Otherwise a turn would never end if its
    // process was stopped and reports nothing.
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
      sinceNs = seat.clock().nanoTime(); // it may have been idle until now without reporting it
    }
    this.contended = contended;
    if (tell && orders != null) {
      orders.contended(id, contended);
    }
  }

  // ---- the process's side; all methods take the seat

  /** Reports that a call waits in the process. */
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

  /** Reports that no call waits in the process any more, and that none was admitted. */
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
   * Reports that a turn has ended in the process.
   *
   * @param ended the turn's number
   * @param waits whether calls wait for the next turn
   * @param reading the use until now
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
          give(); // the end of an earlier turn arrived after the beginning of this one
        }
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * Records the use until now.
   *
   * @param reading as measured by the process
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
   * Records that the process is connected, for the first time or again.
   *
   * @param to receives the orders
   * @param lastTurn the number of its last turn
   * @param runs whether a call of that turn is still running; its end is reported like any turn's
   * @param waits whether calls wait
   * @param reading the use until now
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
      abandoned = false; // its end counts like any other
      work = waits || runs;
      if (ran && !runs) {
        tellDrained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** Records that the process cannot be reached for now. */
  public void disconnected() {
    seat.take();
    orders = null;
    seat.leave();
  }

  /**
   * Records that the virtual GPU was closed there, or that the process is dead: nothing runs and
   * nothing waits.
   */
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
