package dev.vgpu.core.turn;

import dev.vgpu.GpuTimeoutException;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.schedule.UrgencyQueue;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.ProcessAttachment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Admits the calls of one virtual GPU while it has the turn, and measures them.
 *
 * <p>While the gate is open and no call waits in front of it, entering and leaving cost one
 * compare-and-swap each on the gate's {@link GateCount}. Everything else is done with the seat
 * held. Safe for use by several threads.
 */
public final class InProcessGate implements TurnGate {
  private final GpuSeat seat;
  private final List<GpuSeat> seats;
  private final GateOwner owner;
  private final String id;
  private final GateCount count;

  // All fields below are guarded by the seat's lock.
  private final UrgencyQueue<Waiter> queue = new UrgencyQueue<>();
  private final List<Attempt> attempts = new ArrayList<>();
  private long quotaBytes;
  private long reservedBytes;
  private long budgetBytes;
  private long preemptions;
  private long toldNs;
  private boolean closed;
  private boolean finished;
  private GateListener listener = new Nobody();

  private volatile PreemptionClass preemptionClass;
  private volatile boolean cancelBroken;

  /** Set if this JVM itself is under the virtual GPU; otherwise null. */
  private volatile @Nullable ProcessAttachment attachment;

  /**
   * Creates a shut gate without work. {@link #listen} sets who opens it.
   *
   * @param id the virtual GPU's id
   * @param seats the seats of its GPUs; the first one's lock guards this gate
   * @param request the granted terms
   * @param owner told what happens
   */
  public InProcessGate(String id, List<GpuSeat> seats, VirtualGpuRequest request, GateOwner owner) {
    this.seats = List.copyOf(seats);
    this.seat = seats.get(0);
    this.owner = owner;
    this.count = new GateCount(seat.clock(), request.maxConcurrentCalls());
    this.quotaBytes = request.memory().bytes();
    this.preemptionClass = request.preemptionClass();
    this.id = id;
  }

  /** The listener until one is set that decides about turns. */
  private static final class Nobody implements GateListener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void ended() {}

    @Override
    public @Nullable String tryResize(VirtualGpuRequest request) {
      return null;
    }
  }

  /**
   * Sets who decides about its turns. Called with the seat held.
   *
   * @param decides told what the calls do
   */
  public void listen(GateListener decides) {
    listener = decides;
  }

  /**
   * From now on, the backend gates and measures what the calls start, kernel by kernel. Calls then
   * need no turn, only room for their budgets, and the scheduler does not see them.
   *
   * @param made binds the calls' threads
   */
  public void attach(ProcessAttachment made) {
    seat.take();
    try {
      attachment = made;
      if (!closed) {
        count.open();
        admit();
        listener.drained();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  @Nullable ProcessAttachment attachment() {
    return attachment;
  }

  /** Whether the calls of both gates take turns on at least one common GPU. */
  boolean sharesGpuWith(InProcessGate other) {
    return seats.stream().anyMatch(other.seats::contains);
  }

  String id() {
    return id;
  }

  long nanoTime() {
    return seat.clock().nanoTime();
  }

  PreemptionClass preemptionClass() {
    return preemptionClass;
  }

  /** Whether calls are no longer cancelled, because a {@code cancel()} failed. */
  boolean isCancelBroken() {
    return cancelBroken;
  }

  boolean isYieldRequested() {
    return !count.isOpen();
  }

  // ---- the caller's side

  /** Enters at once if the gate is open and no call waits. */
  boolean tryEnter() {
    return count.tryEnter();
  }

  /**
   * Waits until the call is admitted, then enters.
   *
   * @param waiter the calling thread's
   * @param again whether it was inside before, and so goes to the front of its class
   * @param timeoutNs how long to wait at most; {@link Long#MAX_VALUE} waits without bound
   * @throws InterruptedException if interrupted during the wait; the call is not inside then
   */
  void enter(Waiter waiter, boolean again, long timeoutNs) throws InterruptedException {
    long startNs = nanoTime();
    seat.take();
    try {
      checkOpenFor(waiter);
      if (again) {
        queue.addFirst(waiter);
      } else {
        queue.add(waiter);
      }
      count.setQueued(true);
      if (attachment == null) {
        listener.wanted();
      }
      admit();
    } finally {
      seat.stepAndLeave();
    }
    await(waiter, startNs, timeoutNs);
    seat.holdBegins();
    count.begin();
  }

  private void checkOpenFor(Waiter waiter) {
    if (closed) {
      throw new IllegalStateException("the virtual GPU is closed: id=" + id());
    }
    if (waiter.memoryBytes > quotaBytes - reservedBytes) {
      throw owner.refusal(
          "a call's memory budget is larger than the quota can give: id="
              + id()
              + " asked="
              + MemorySize.ofBytes(waiter.memoryBytes)
              + " quota="
              + MemorySize.ofBytes(quotaBytes)
              + " reserved="
              + MemorySize.ofBytes(reservedBytes));
    }
  }

  private void await(Waiter waiter, long startNs, long timeoutNs) throws InterruptedException {
    if (!waiter.isSettled() && timeoutNs > 0) {
      seat.spin(waiter);
    }
    while (!waiter.isSettled()) {
      boolean interrupted = Thread.interrupted();
      long leftNs = timeoutNs == Long.MAX_VALUE ? timeoutNs : timeoutNs - (nanoTime() - startNs);
      if (interrupted || leftNs <= 0) {
        if (giveUp(waiter)) {
          if (interrupted) {
            throw new InterruptedException();
          }
          throw new GpuTimeoutException(
              "a call did not get its turn in time: id=" + id() + " timeoutMs=" + timeoutNs / 1e6);
        }
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
        break;
      }
      if (leftNs == Long.MAX_VALUE) {
        LockSupport.park(this);
      } else {
        LockSupport.parkNanos(this, leftNs);
      }
    }
    waiter.throwIfFailed();
  }

  /** Removes a waiter; returns false if it was settled in the meantime. */
  private boolean giveUp(Waiter waiter) {
    seat.take();
    try {
      if (!queue.remove(waiter)) {
        return false;
      }
      admit();
      if (attachment == null && !hasWork()) {
        listener.drained();
      }
      return true;
    } finally {
      seat.stepAndLeave();
    }
  }

  /** Leaves after a call without a budget. */
  void exit() {
    if (count.exit()) {
      afterExit(0, null);
    }
  }

  /** Leaves after a call with this budget; 0 means none. */
  void exit(long memoryBytes) {
    if (count.exit() || memoryBytes > 0) {
      afterExit(memoryBytes, null);
    }
  }

  /** Leaves after an attempt. Its call keeps its budget. */
  void exit(Attempt attempt) {
    boolean ignored = count.exit();
    afterExit(0, attempt);
  }

  /** Gives back the budget of a call whose last attempt has left. */
  void giveBudgetBack(long memoryBytes) {
    seat.take();
    try {
      budgetBytes -= memoryBytes;
      admit();
    } finally {
      seat.stepAndLeave();
    }
  }

  private void afterExit(long memoryBytes, @Nullable Attempt attempt) {
    seat.take();
    try {
      budgetBytes -= memoryBytes;
      if (attempt != null) {
        attempts.remove(attempt);
      }
      admit();
      if (count.inside() == 0) {
        seat.holdEnds();
        if (closed) {
          finish();
        } else if (attachment == null) {
          listener.drained();
        }
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  /** Admits waiting calls, as far as the turn, the bound and the quota allow. */
  private void admit() {
    for (Waiter next = queue.peek(); next != null; next = queue.peek()) {
      boolean fits =
          next.memoryBytes == 0 || budgetBytes + reservedBytes + next.memoryBytes <= quotaBytes;
      if (!fits || !count.tryAdmit()) {
        return;
      }
      queue.poll();
      budgetBytes += next.memoryBytes;
      if (next.attempt != null) {
        attempts.add(next.attempt);
      }
      next.admit();
      if (next.thread != Thread.currentThread()) {
        seat.wakeAfterwards(next);
      }
    }
    count.setQueued(false);
  }

  // ---- the scheduler's side, with the seat held

  @Override
  public void open() {
    if (closed) {
      return; // the last calls are leaving
    }
    count.open();
    admit();
  }

  @Override
  public boolean shut() {
    return attachment != null || count.shut();
  }

  @Override
  public int preempt() {
    int asked = 0;
    for (Attempt attempt : attempts) {
      if (attempt.requestEnd()) {
        asked++;
        seat.doAfterwards(() -> owner.runCancel(attempt::cancel));
      }
    }
    preemptions += asked;
    return asked;
  }

  @Override
  public boolean hasWork() {
    return attachment == null && (count.inside() > 0 || !queue.isEmpty());
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    toldNs = Math.max(toldNs, count.busyNs(nowNs)); // a call that ends takes its time out first
    return toldNs;
  }

  @Override
  public void contended(boolean contended) {
    count.setContended(contended);
  }

  // ---- the pool's side

  /**
   * Replaces the granted terms, or changes nothing.
   *
   * @param request the new terms
   * @return why they cannot be granted, or null
   */
  public @Nullable String tryResize(VirtualGpuRequest request) {
    seat.take();
    try {
      long bytes = request.memory().bytes();
      if (closed) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + id());
      }
      if (bytes < budgetBytes + reservedBytes || bytes < largestWaiting() + reservedBytes) {
        return "its calls and reservations need "
            + MemorySize.ofBytes(Math.max(budgetBytes, largestWaiting()) + reservedBytes);
      }
      String obstacle = listener.tryResize(request);
      if (obstacle != null) {
        return obstacle;
      }
      quotaBytes = bytes;
      preemptionClass = request.preemptionClass();
      count.bound(request.maxConcurrentCalls());
      admit();
      return null;
    } finally {
      seat.stepAndLeave();
    }
  }

  private long largestWaiting() {
    return queue.largest(waiter -> waiter.memoryBytes);
  }

  /**
   * Sets memory aside.
   *
   * @param bytes above 0
   * @return whether that much was free, and no waiting call is made impossible by it
   */
  public boolean tryReserve(long bytes) {
    seat.take();
    try {
      if (closed) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + id());
      }
      long freeBytes = quotaBytes - reservedBytes;
      if (bytes > freeBytes - budgetBytes || bytes > freeBytes - largestWaiting()) {
        return false;
      }
      reservedBytes += bytes;
      return true;
    } finally {
      seat.leave();
    }
  }

  /**
   * Returns memory that was set aside.
   *
   * @param bytes the amount that was set aside
   */
  public void release(long bytes) {
    seat.take();
    try {
      reservedBytes -= bytes;
      admit();
    } finally {
      seat.stepAndLeave();
    }
  }

  /**
   * {@return whether this much is free now}
   *
   * @param bytes the amount needed
   */
  public boolean hasHeadroom(long bytes) {
    seat.take();
    try {
      return !closed && bytes <= quotaBytes - reservedBytes - budgetBytes;
    } finally {
      seat.leave();
    }
  }

  /** Fails all waiting calls. The owner is told when the last call has left. Call this once. */
  public void close() {
    seat.take();
    try {
      closed = true;
      count.shut();
      for (Waiter waiter = queue.poll(); waiter != null; waiter = queue.poll()) {
        waiter.fail(new IllegalStateException("the virtual GPU was closed: id=" + id()));
        seat.wakeAfterwards(waiter);
      }
      if (count.inside() == 0) {
        finish();
      }
    } finally {
      seat.stepAndLeave();
    }
  }

  private void finish() {
    if (!finished) {
      finished = true;
      listener.ended();
      seat.doAfterwards(owner::drained);
    }
  }

  /** {@return the use until now} */
  public UsageReading usage() {
    seat.take();
    try {
      return usageWithSeat();
    } finally {
      seat.leave();
    }
  }

  UsageReading usageWithSeat() {
    return UsageReading.ofCalls(
        gpuTimeNs(nanoTime()),
        count.calls(),
        preemptions,
        count.inside(),
        queue.size(),
        budgetBytes + reservedBytes);
  }

  void cancelFailed(String reason, @Nullable Throwable cause) {
    cancelBroken = true;
    owner.cancelFailed(reason, cause);
  }
}
