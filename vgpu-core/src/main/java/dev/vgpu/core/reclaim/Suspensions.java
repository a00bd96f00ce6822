package dev.vgpu.core.reclaim;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.discovery.Installed;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.spi.ProcessSuspender;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Suspends what is under a virtual GPU, and lets it go on: all of its processes, or none. What is
 * begun is on disk first, so that the next holder of the seat finds what this one leaves half done.
 * One thread at a time does so for one virtual GPU; otherwise safe for use by several.
 */
public final class Suspensions {
  /** What {@link Booking#suspension} says where memory was reclaimed. */
  static final String BY_RECLAIM = "reclaim";

  /** All memory that can be moved. */
  public static final MemorySize ALL = MemorySize.ofBytes(Long.MAX_VALUE);

  private static final Logger log = LoggerFactory.getLogger(Suspensions.class);
  private static final long LOOK_NS = 500_000;
  private static final long UNDO_NS = 30_000_000_000L;

  private final NanoClock clock;
  private final LeaseTable table;
  private final @Nullable Path runDirectory;
  private final Supplier<List<ProcessSuspender>> find;
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable List<ProcessSuspender> suspenders;

  /** Makes one; without a run directory there are no processes, and only calls are held back. */
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

  /** {@return what can suspend processes on this machine} */
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

  /** Whether what is under a virtual GPU can be suspended, as far as that can be told. */
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
   * Suspends a virtual GPU. Blocks. One that is suspended already stays so: until its owner says
   * otherwise, once he has asked for it.
   *
   * @param wanted how much of its memory is needed, where a part can be moved
   * @return whether it was not suspended before
   * @throws GpuSuspendException if one of its processes cannot be, or not in time
   */
  public boolean suspend(Booking booking, String by, MemorySize wanted, long timeoutNs) {
    long untilNs = clock.nanoTime() + timeoutNs;
    booking.suspending.lock();
    try {
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
      booking.suspending.unlock();
    }
  }

  private void suspendMarked(Booking booking, MemorySize wanted, long untilNs, long timeoutNs) {
    Set<Long> done = new LinkedHashSet<>();
    boolean all = false;
    booking.suspended = true;
    booking.gate.suspend();
    try {
      awaitQuiet(booking, untilNs, timeoutNs);
      Optional<MemoryMover> mover = mover(booking);
      if (mover.isPresent()) {
        mover.get().moveOut(wanted, left(untilNs));
        all = true;
        return;
      }
      // A process that has come to hold memory meanwhile is one more; no other will.
      for (List<Long> more = pids(booking, done); !more.isEmpty(); more = pids(booking, done)) {
        need(booking.gpu()).suspend(booking.gpu(), more, left(untilNs));
        done.addAll(more);
      }
      all = true;
    } finally {
      if (!all) {
        undo(booking, List.copyOf(done));
      }
    }
  }

  private void awaitQuiet(Booking booking, long untilNs, long timeoutNs) {
    while (!booking.gate.isQuiet()) {
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

  private void undo(Booking booking, List<Long> done) {
    try {
      Optional<MemoryMover> mover = mover(booking);
      if (mover.isPresent()) {
        mover.get().moveBack(Duration.ofNanos(UNDO_NS));
      }
      if (!done.isEmpty()) {
        need(booking.gpu()).resume(booking.gpu(), done, Duration.ofNanos(UNDO_NS));
      }
    } catch (VgpuException e) {
      log.error("processes stay suspended: id={} pids={}", booking.id, done, e);
      if (mover(booking).isPresent()) {
        return; // its memory is not all back: it must not go on
      }
    }
    goOn(booking);
  }

  /** Whoever suspends a process suspends all that it does: it must be this virtual GPU's alone. */
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

  // ---- going on

  /**
   * Lets a virtual GPU go on, or leaves all of it suspended. Blocks.
   *
   * @return whether it was suspended before, and goes on now; reclaim does not let go on whom the
   *     owner has suspended
   * @throws GpuSuspendException if one of its processes cannot
   */
  public boolean resume(Booking booking, String by, long timeoutNs) {
    booking.suspending.lock();
    try {
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
    } finally {
      booking.suspending.unlock();
    }
  }

  /** Where there is no room for all, all leave. */
  private static void moveBack(MemoryMover mover, long timeoutNs) {
    try {
      mover.moveBack(Duration.ofNanos(timeoutNs));
    } catch (GpuSuspendException e) {
      try {
        mover.moveOut(ALL, Duration.ofNanos(UNDO_NS));
      } catch (GpuSuspendException another) {
        e.addSuppressed(another);
      }
      throw e;
    }
  }

  private void goOn(Booking booking) {
    booking.suspended = false;
    table.goesOn(booking);
    booking.gate.resume();
    booking.goOnInSpace();
  }

  // ---- taking over

  /**
   * Puts in order what that one left half done. Blocks.
   *
   * @return whether it is suspended
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
      // Nobody was left to bring it back, so after a while the processes did; or it was under way.
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

  /** Those that hold memory, but for some; one that dies meanwhile is nobody's loss. */
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
