package dev.vgpu.core.pool;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.ProcessSuspender;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Suspends what is under a virtual GPU, and lets it go on. One thread at a time does so for one
 * virtual GPU; otherwise safe for use by several.
 */
final class Suspensions {
  private static final Logger log = LoggerFactory.getLogger(Suspensions.class);
  private static final long LOOK_NS = 500_000;

  private final NanoClock clock;
  private final Supplier<List<ProcessSuspender>> find;
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable List<ProcessSuspender> suspenders;

  Suspensions(NanoClock clock, Supplier<List<ProcessSuspender>> find) {
    this.clock = clock;
    this.find = find;
  }

  static List<ProcessSuspender> installed() {
    List<ProcessSuspender> found = new ArrayList<>();
    ServiceLoader.load(ProcessSuspender.class).forEach(found::add);
    if (found.isEmpty()) {
      ServiceLoader.load(ProcessSuspender.class, Suspensions.class.getClassLoader())
          .forEach(found::add);
    }
    return found;
  }

  private List<ProcessSuspender> suspenders() {
    lock.lock();
    try {
      if (suspenders == null) {
        suspenders = List.copyOf(find.get());
      }
      return suspenders;
    } finally {
      lock.unlock();
    }
  }

  Optional<ProcessSuspender> serving(PhysicalGpu gpu) {
    return suspenders().stream().filter(suspender -> suspender.serves(gpu)).findFirst();
  }

  /**
   * Suspends all processes of a virtual GPU, or none. Blocks.
   *
   * @throws VgpuException if one of them cannot be, or not in time
   */
  void suspend(Booking booking, long timeoutNs) {
    long untilNs = clock.nanoTime() + timeoutNs;
    ProcessSuspender suspender = need(booking);
    List<Long> done = new ArrayList<>();
    boolean all = false;
    booking.suspended = true;
    booking.gate.suspend();
    try {
      while (!booking.gate.isQuiet()) {
        if (clock.nanoTime() - untilNs >= 0) {
          throw new VgpuException(
              "its work on the GPU has not ended within " + timeoutNs / 1_000_000 + " ms");
        }
        LockSupport.parkNanos(this, LOOK_NS);
      }
      for (long pid : pids(booking)) {
        suspender.suspend(pid, left(untilNs));
        done.add(pid);
      }
      all = true;
    } finally {
      if (!all) {
        done.forEach(pid -> undo(suspender, pid, timeoutNs));
        booking.suspended = false;
        booking.gate.resume();
      }
    }
  }

  private static void undo(ProcessSuspender suspender, long pid, long timeoutNs) {
    try {
      suspender.resume(pid, Duration.ofNanos(timeoutNs));
    } catch (VgpuException e) {
      log.warn("a process stays suspended: pid={}", pid, e);
    }
  }

  /**
   * Lets all processes of a virtual GPU go on, or leaves all suspended. Blocks.
   *
   * @throws VgpuException if one of them cannot
   */
  void resume(Booking booking, long timeoutNs) {
    long untilNs = clock.nanoTime() + timeoutNs;
    ProcessSuspender suspender = need(booking);
    List<Long> done = new ArrayList<>();
    try {
      for (long pid : pids(booking)) {
        suspender.resume(pid, left(untilNs));
        done.add(pid);
      }
    } catch (VgpuException e) {
      for (long pid : done) {
        try {
          suspender.suspend(pid, Duration.ofNanos(timeoutNs));
        } catch (VgpuException another) {
          e.addSuppressed(another);
        }
      }
      throw e;
    }
    booking.suspended = false;
    booking.gate.resume();
  }

  /** Finds out whether an earlier holder of the seat has suspended what is under a virtual GPU. */
  void takeOver(Booking booking) {
    List<Long> pids = pids(booking);
    Optional<ProcessSuspender> suspender =
        pids.isEmpty() ? Optional.empty() : serving(booking.gpu());
    if (suspender.isPresent() && pids.stream().anyMatch(suspender.get()::isSuspended)) {
      booking.suspended = true;
      booking.gate.suspend();
    }
  }

  private ProcessSuspender need(Booking booking) {
    return serving(booking.gpu())
        .orElseThrow(
            () ->
                new VgpuException("nothing here can suspend processes: gpu=" + booking.gpu().id()));
  }

  /** Those that are there; one that dies meanwhile is nobody's loss. */
  private static List<Long> pids(Booking booking) {
    EnforcedLease lease = booking.enforced();
    return lease == null
        ? List.of()
        : lease.visibleProcesses().stream()
            .filter(pid -> ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false))
            .toList();
  }

  private Duration left(long untilNs) {
    return Duration.ofNanos(Math.max(0, untilNs - clock.nanoTime()));
  }
}
