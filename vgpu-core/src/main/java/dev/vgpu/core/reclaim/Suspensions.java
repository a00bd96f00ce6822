package dev.vgpu.core.reclaim;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.discovery.Installed;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.spi.ProcessSuspender;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Suspends and resumes virtual GPUs: all processes of one, or none. A suspension is on disk from
 * before its start until after the resumption, so that the next holder of the seat can finish what
 * this one leaves half done. Operations on the same virtual GPU run one at a time. Thread-safe.
 */
public final class Suspensions {
  /** The value of {@link Booking#suspension} for a suspension by reclaim. */
  static final String BY_RECLAIM = "reclaim";

  /** As much memory as can be moved. */
  public static final MemorySize ALL = MemorySize.ofBytes(Long.MAX_VALUE);

  /** The longest timeout; longer ones count as this one. */
  public static final Duration LONGEST = Duration.ofMinutes(5);

  private static final Logger log = LoggerFactory.getLogger(Suspensions.class);
  private static final long LOOK_NS = 500_000;
  private static final long UNDO_NS = 30_000_000_000L;

  private final NanoClock clock;
  private final LeaseTable table;
  private final @Nullable Path runDirectory;
  private final Supplier<List<ProcessSuspender>> find;
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable List<ProcessSuspender> suspenders;
  private volatile boolean closed;

  /**
   * Creates an instance. Without a run directory there are no processes; only calls are held back.
   */
  public Suspensions(
      NanoClock clock,
      LeaseTable table,
      @Nullable Path runDirectory,
      Supplier<List<ProcessSuspender>> find) {
    this.clock = clock;
    this.table = table;
    this.runDirectory = runDirectory;
    this.find = find;
  }

  /** {@return the installed process suspenders} */
  public static List<ProcessSuspender> installed() {
    return Installed.of(
        ProcessSuspender.class, in -> ServiceLoader.load(ProcessSuspender.class, in));
  }

  private List<ProcessSuspender> suspenders() {
    lock.lock();
    try {
      if (suspenders == null) {
        Path directory = runDirectory;
        List<ProcessSuspender> found = directory == null ? List.of() : List.copyOf(find.get());
        if (directory != null) {
          found.forEach(each -> each.begin(directory));
        }
        suspenders = found;
      }
      return suspenders;
    } finally {
      lock.unlock();
    }
  }

  /** Whether a virtual GPU can probably be suspended. */
  boolean canSuspend(Booking booking) {
    return mover(booking).isPresent() || serving(booking.gpu()).isPresent();
  }

  private static Optional<MemoryMover> mover(Booking booking) {
    EnforcedLease lease = booking.enforced();
    return lease == null ? Optional.empty() : lease.mover();
  }

  private Optional<ProcessSuspender> serving(PhysicalGpu gpu) {
    return suspenders().stream().filter(suspender -> suspender.obstacle(gpu).isEmpty()).findFirst();
  }

  private ProcessSuspender need(PhysicalGpu gpu) {
    return serving(gpu)
        .orElseThrow(
            () -> {
              List<String> reasons = new ArrayList<>();
              suspenders()
                  .forEach(
                      each ->
                          reasons.add(
                              each.name() + ": " + each.obstacle(gpu).orElse("it can now")));
              return new GpuSuspendException(
                  "nothing here can suspend processes: gpu=" + gpu.id() + " " + reasons);
            });
  }

  // ---- suspending

  /**
   * Suspends a virtual GPU. Blocks. If it is suspended already, it stays so. If {@code by} is the
   * owner, it stays suspended until the owner resumes it.
   *
   * @param wanted how much of its memory is needed, if a part can be moved
   * @return false if it was suspended already
   * @throws GpuSuspendException if a process cannot be suspended, or not in time
   */
  public boolean suspend(Booking booking, String by, MemorySize wanted, long timeoutNs) {
    long untilNs = clock.nanoTime() + timeoutNs;
    begin(booking, timeoutNs);
    try {
      checkOpen();
      if (booking.released) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + booking.id);
      }
      settle(booking, timeoutNs);
      if (booking.suspended) {
        if (by.equals(Booking.BY_OWNER)) {
          table.suspended(booking, by);
        }
        return false;
      }
      if (mover(booking).isEmpty()) {
        checkAlone(booking);
      }
      table.suspended(booking, by);
      suspendMarked(booking, wanted, untilNs, timeoutNs);
      return true;
    } finally {
      end(booking);
    }
  }

  /**
   * Waits until no other suspends or resumes this virtual GPU. Few may wait: each takes a thread
   * that others need.
   *
   * @throws GpuSuspendException if too many wait already, or the time is over
   */
  private void begin(Booking booking, long timeoutNs) {
    boolean waits = booking.suspenders.tryAcquire();
    boolean begun = false;
    try {
      begun = waits && lock(booking, clock.nanoTime() + timeoutNs);
    } finally {
      if (waits && !begun) {
        booking.suspenders.release();
      }
    }
    if (!begun) {
      throw new GpuSuspendException(
          "others suspend or resume it, or wait to do so: id=" + booking.id);
    }
  }

  private static void end(Booking booking) {
    booking.suspending.unlock();
    booking.suspenders.release();
  }

  /** Ignores interrupts, except that they are noted. */
  private boolean lock(Booking booking, long untilNs) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return booking.suspending.tryLock(untilNs - clock.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Ends the waiting for work to end, and begins no more suspensions. */
  void close() {
    closed = true;
  }

  private void checkOpen() {
    if (closed) {
      throw SeatLostException.givenUp(); // the request goes to the next holder
    }
    table.checkDecides();
  }

  private void suspendMarked(Booking booking, MemorySize wanted, long untilNs, long timeoutNs) {
    Set<Long> done = new LinkedHashSet<>();
    boolean all = false;
    boolean moves = false;
    booking.suspended = true;
    booking.gate.suspend();
    try {
      awaitQuiet(booking, untilNs, timeoutNs);
      checkOpen();
      Optional<MemoryMover> mover = mover(booking);
      if (mover.isPresent()) {
        moves = true;
        mover.get().moveOut(wanted, left(untilNs));
        all = true;
        return;
      }
      // Another process may have allocated memory since the last look; suspend it too.
      for (List<Long> more = pids(booking, done); !more.isEmpty(); more = pids(booking, done)) {
        need(booking.gpu()).suspend(booking.gpu(), more, left(untilNs));
        done.addAll(more);
      }
      all = true;
    } finally {
      if (!all) {
        undo(booking, moves, List.copyOf(done));
      }
    }
  }

  private void awaitQuiet(Booking booking, long untilNs, long timeoutNs) {
    while (!booking.gate.isQuiet()) {
      checkOpen();
      if (clock.nanoTime() - untilNs >= 0) {
        throw new GpuSuspendException(
            "its work on the GPU has not ended within "
                + timeoutNs / 1_000_000
                + " ms: id="
                + booking.id);
      }
      LockSupport.parkNanos(this, LOOK_NS);
    }
  }

  /** Leaves everything to the next holder of the seat, if this process does not decide any more. */
  private void undo(Booking booking, boolean moved, List<Long> done) {
    table.checkDecides();
    try {
      Optional<MemoryMover> mover = mover(booking);
      if (moved && mover.isPresent()) {
        mover.get().moveBack(Duration.ofNanos(UNDO_NS));
      }
      if (!done.isEmpty()) {
        need(booking.gpu()).resume(booking.gpu(), done, Duration.ofNanos(UNDO_NS));
      }
    } catch (RuntimeException e) {
      log.error("processes stay suspended: id={} pids={}", booking.id, done, e);
      if (moved) {
        return; // not all of its memory is back: it must stay suspended
      }
    }
    goOn(booking);
  }

  /**
   * Checks that no process of this virtual GPU is also under another one: a process is suspended as
   * a whole.
   */
  private void checkAlone(Booking booking) {
    EnforcedLease lease = booking.enforced();
    if (lease == null) {
      return;
    }
    List<Long> own = lease.visibleProcesses();
    if (own.size() < lease.processes().size()) {
      throw new GpuSuspendException(
          "some of its processes are in another container, and cannot be suspended from here: id="
              + booking.id
              + " processes="
              + lease.processes());
    }
    for (Booking other : table.bookings()) {
      EnforcedLease beside = other.enforced();
      if (other == booking || beside == null) {
        continue;
      }
      List<Long> both = beside.visibleProcesses().stream().filter(own::contains).toList();
      if (!both.isEmpty()) {
        throw new GpuSuspendException(
            "a process can only be suspended as a whole, and these are under another virtual GPU"
                + " too: id="
                + booking.id
                + " other="
                + other.id
                + " pids="
                + both);
      }
    }
  }

  // ---- resuming

  /**
   * Resumes a virtual GPU, or leaves all of it suspended. Blocks.
   *
   * @return true if it was suspended and is resumed; false also if {@code by} is reclaim and the
   *     owner has suspended it
   * @throws GpuSuspendException if a process cannot be resumed
   */
  public boolean resume(Booking booking, String by, long timeoutNs) {
    begin(booking, timeoutNs);
    try {
      return goOn(booking, by, timeoutNs);
    } finally {
      end(booking);
    }
  }

  /**
   * Resumes for reclaim a virtual GPU that this process, which is about to end, should not leave
   * suspended. Waits for what is under way there, however many others wait.
   *
   * @throws GpuSuspendException if a process cannot be resumed, or the time is over
   */
  void resumeAtTheEnd(Booking booking, long timeoutNs) {
    if (!lock(booking, clock.nanoTime() + timeoutNs)) {
      throw new GpuSuspendException("others still suspend or resume it: id=" + booking.id);
    }
    try {
      boolean ignored = goOn(booking, BY_RECLAIM, timeoutNs);
    } finally {
      booking.suspending.unlock();
    }
  }

  private boolean goOn(Booking booking, String by, long timeoutNs) {
    table.checkDecides();
    if (by.equals(BY_RECLAIM) && booking.isSuspendedByOwner()) {
      return false;
    }
    settle(booking, timeoutNs);
    if (!booking.suspended) {
      return false;
    }
    List<Long> pids = pids(booking, Set.of());
    Optional<MemoryMover> mover = mover(booking);
    if (mover.isPresent()) {
      moveBack(mover.get(), timeoutNs);
    } else if (!pids.isEmpty()) {
      need(booking.gpu()).resume(booking.gpu(), pids, Duration.ofNanos(timeoutNs));
    }
    goOn(booking);
    return true;
  }

  /** Moves all memory back; if there is not enough room, moves all of it out again. */
  private void moveBack(MemoryMover mover, long timeoutNs) {
    try {
      mover.moveBack(Duration.ofNanos(timeoutNs));
    } catch (GpuSuspendException e) {
      table.checkDecides();
      try {
        mover.moveOut(ALL, Duration.ofNanos(UNDO_NS));
      } catch (GpuSuspendException another) {
        e.addSuppressed(another);
      }
      throw e;
    }
  }

  private void goOn(Booking booking) {
    table.checkDecides();
    booking.suspended = false;
    table.goesOn(booking);
    booking.gate.resume();
    booking.goOnInSpace();
  }

  // ---- taking over

  /**
   * Finishes or undoes what an earlier holder of the seat left half done. Blocks.
   *
   * @return whether the virtual GPU is suspended
   */
  boolean recover(Booking booking, long timeoutNs) {
    booking.suspending.lock();
    try {
      settle(booking, timeoutNs);
      return booking.suspended;
    } finally {
      booking.suspending.unlock();
    }
  }

  private void settle(Booking booking, long timeoutNs) {
    if (!booking.unsettled) {
      return;
    }
    List<Long> pids = pids(booking, Set.of());
    Optional<MemoryMover> mover = mover(booking);
    boolean suspended = booking.isSuspendedByOwner();
    if (mover.isPresent()) {
      // Processes without a seat move their memory back after a while; or a move was under way.
      mover.get().moveOut(ALL, Duration.ofNanos(timeoutNs));
      suspended = true;
    } else if (!pids.isEmpty()) {
      suspended = need(booking.gpu()).recover(booking.gpu(), pids, Duration.ofNanos(timeoutNs));
    }
    booking.unsettled = false;
    if (!suspended) {
      goOn(booking);
    }
  }

  /** The living processes that hold memory, except {@code without}. */
  private static List<Long> pids(Booking booking, Set<Long> without) {
    EnforcedLease lease = booking.enforced();
    return lease == null
        ? List.of()
        : lease.memoryHolders().stream()
            .filter(pid -> !without.contains(pid))
            .filter(pid -> ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false))
            .toList();
  }

  private Duration left(long untilNs) {
    return Duration.ofNanos(Math.max(0, untilNs - clock.nanoTime()));
  }
}
