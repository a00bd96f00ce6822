package dev.vgpu.core.reclaim;

import dev.vgpu.GpuDriverException;
import dev.vgpu.core.ThreadEnd;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.NodeContext;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.watch.GpuEvent;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reclaims memory when a GPU runs short of it: it takes readings, lets the planner of each GPU
 * decide, and carries out the actions. Belongs to the process that decides about the GPUs. If
 * watermarks are set, its own thread takes a step periodically. Worker threads carry out long
 * actions and report the outcome before a later step.
 */
public final class MemoryReclaim implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(MemoryReclaim.class);
  private static final long MILLI_NS = 1_000_000;
  private static final long STEP_EVERY_NS = 100 * MILLI_NS;
  private static final long RESUME_NS = 30_000 * MILLI_NS;
  private static final long RESUME_AGAIN_NS = 1_000 * MILLI_NS;
  private static final long AT_THE_END_NS = 2_000 * MILLI_NS;

  private record Watched(GpuBook book, ReclaimPlanner planner) {}

  private final NodeContext node;
  private final LeaseTable table;
  private final Discovery discovery;
  private final Suspensions suspensions;
  private final List<Watched> watched = new ArrayList<>();
  private final Queue<Runnable> outcomes = new ConcurrentLinkedQueue<>();
  private volatile boolean closed;
  private @Nullable Thread thread;

  /** Creates an instance that is not started. */
  public MemoryReclaim(
      NodeContext node, LeaseTable table, Discovery discovery, Suspensions suspensions) {
    this.node = node;
    this.table = table;
    this.discovery = discovery;
    this.suspensions = suspensions;
    for (GpuBook book : table.books()) {
      ReclaimSettings settings =
          ReclaimSettings.from(node.settings().of(book.gpu.id()), book.gpu.usableMemory());
      if (settings.isOn()) {
        watched.add(new Watched(book, new ReclaimPlanner(settings)));
      }
    }
  }

  /** Starts the thread, if watermarks are set. */
  public void start() {
    if (watched.isEmpty()) {
      return;
    }
    Thread made = new Thread(this::run, "vgpu-reclaim");
    made.setDaemon(true);
    thread = made;
    made.start();
  }

  /** Waits until the thread, if there is one, has ended. */
  public void awaitEnd(long deadlineNs) {
    Thread running = thread;
    if (running != null) {
      ThreadEnd.await(running, node.clock(), deadlineNs);
    }
  }

  /**
   * Recovers the tenants that an earlier holder of the seat has suspended. Call it before requests
   * are served.
   */
  public void takeOver() {
    for (Booking booking : table.bookings()) {
      if (booking.unsettled) {
        node.workers().execute(() -> recover(booking));
      }
    }
  }

  /** The earlier holder may have died while it suspended or resumed this tenant. */
  private void recover(Booking booking) {
    boolean suspended = true;
    try {
      suspended = suspensions.recover(booking, RESUME_NS);
    } catch (RuntimeException e) {
      log.error("some of its processes stay suspended: id={}", booking.id, e);
    }
    if (!suspended) {
      String reason = "the last holder of the seat died while it suspended it";
      log.info("resumed: id={}: {}", booking.id, reason);
      node.listeners().publish(at -> new GpuEvent.Resumed(at, booking.id, reason));
    } else if (booking.books.stream().noneMatch(this::isWatched)) {
      letGoOnOnceItFits(booking);
    }
  }

  /** Retries until the tenant is resumed: without reclaim on its GPUs, nothing else would retry. */
  private void letGoOnOnceItFits(Booking booking) {
    while (!closed
        && !booking.released
        && booking.suspended
        && !booking.isSuspendedByOwner()
        && !letGoOn(booking, "memory is not reclaimed here any more")) {
      LockSupport.parkNanos(this, RESUME_AGAIN_NS);
    }
  }

  private boolean isWatched(GpuBook book) {
    return watched.stream().anyMatch(each -> each.book == book);
  }

  private void run() {
    while (!closed) {
      try {
        step(node.clock().nanoTime());
      } catch (RuntimeException | Error e) {
        log.error("a step of memory reclaim failed", e);
      }
      LockSupport.parkNanos(this, STEP_EVERY_NS);
    }
  }

  /** Takes one step. Must not run concurrently. */
  void step(long nowNs) {
    for (Runnable outcome = outcomes.poll(); outcome != null; outcome = outcomes.poll()) {
      outcome.run();
    }
    for (Watched gpu : watched) {
      List<Booking> bookings =
          table.bookings().stream().filter(booking -> booking.books.contains(gpu.book)).toList();
      Set<Long> untouchable = untouchable();
      List<TenantReading> tenants = new ArrayList<>();
      bookings.forEach(booking -> tenants.add(reading(booking, gpu.book, untouchable)));
      long free = freeBytes(gpu.book, tenants);
      for (ReclaimAction action : gpu.planner.doWork(nowNs, free, tenants)) {
        perform(gpu.planner, action);
      }
    }
  }

  // ---- readings

  private long freeBytes(GpuBook book, List<TenantReading> tenants) {
    try {
      MemorySize told = discovery.freeMemory(book.gpu.id()).orElse(null);
      if (told != null) {
        return told.bytes();
      }
    } catch (GpuDriverException e) {
      log.warn("a GPU's free memory cannot be read: gpu={}: {}", book.gpu.id(), e.getMessage());
    }
    long held =
        tenants.stream()
            .filter(tenant -> !tenant.suspended())
            .mapToLong(TenantReading::memoryBytes)
            .sum();
    return Math.max(0, book.gpu.usableMemory().bytes() - held);
  }

  /** Processes that are never ended: this one, and the owners of online tenants. */
  private Set<Long> untouchable() {
    Set<Long> pids = new LinkedHashSet<>();
    pids.add(node.self().pid());
    for (Booking booking : table.bookings()) {
      if (booking.request().preemptionClass() == PreemptionClass.ONLINE) {
        pids.add(booking.owner.pid());
      }
    }
    return pids;
  }

  private TenantReading reading(Booking booking, GpuBook book, Set<Long> untouchable) {
    EnforcedLease lease = booking.enforced();
    List<Long> visible = lease == null ? List.of() : lease.visibleProcesses();
    Set<Long> mayEnd =
        visible.stream().filter(pid -> !untouchable.contains(pid)).collect(Collectors.toSet());
    boolean all = lease != null && mayEnd.size() == lease.processes().size();
    long reserved = booking.usage().memoryReserved().bytes();
    int at = booking.books.indexOf(book);
    long used = lease == null ? 0 : lease.memoryUsed(at, booking.books.size()).bytes();
    return new TenantReading(
        booking.id,
        booking.request().name(),
        booking.request().preemptionClass(),
        Math.max(used, reserved),
        booking.usage().gpuTime().toNanos(),
        booking.calls.canReclaim(),
        !mayEnd.isEmpty() && all && suspensions.canSuspend(booking),
        mayEnd,
        booking.suspended,
        booking.isSuspendedByOwner() || !othersCanTakeBack(booking, book));
  }

  private boolean othersCanTakeBack(Booking booking, GpuBook book) {
    return watched.stream()
        .filter(gpu -> gpu.book != book && booking.books.contains(gpu.book))
        .allMatch(gpu -> gpu.planner.canTakeBack(booking.id));
  }

  // ---- actions

  private void perform(ReclaimPlanner planner, ReclaimAction action) {
    if (action instanceof ReclaimAction.HoldBack hold) {
      table.holdBack(hold.name(), hold.reason());
    } else if (action instanceof ReclaimAction.LetBack let) {
      table.letBack(let.name());
    } else if (action instanceof ReclaimAction.Ask ask) {
      table.booking(ask.id()).ifPresent(booking -> ask(planner, booking, ask));
    } else if (action instanceof ReclaimAction.Suspend suspend) {
      table.booking(suspend.id()).ifPresent(booking -> suspend(planner, booking, suspend));
    } else if (action instanceof ReclaimAction.Resume resume) {
      table.booking(resume.id()).ifPresent(booking -> resume(planner, booking, resume));
    } else if (action instanceof ReclaimAction.End end) {
      table.booking(end.id()).ifPresent(booking -> end(booking, end));
    }
  }

  private void ask(ReclaimPlanner planner, Booking booking, ReclaimAction.Ask ask) {
    MemorySize wanted = MemorySize.ofBytes(ask.wantedBytes());
    log.info("asked to free memory: id={} wanted={}: {}", ask.id(), wanted, ask.reason());
    node.listeners().publish(at -> new GpuEvent.ReclaimAsked(at, ask.id(), wanted, ask.reason()));
    booking.calls.reclaim(ask.wantedBytes(), () -> outcomes.add(() -> planner.answered(ask.id())));
  }

  private void suspend(ReclaimPlanner planner, Booking booking, ReclaimAction.Suspend suspend) {
    EnforcedLease lease = booking.enforced();
    MemorySize held = lease == null ? MemorySize.ZERO : lease.memoryUsed();
    MemorySize wanted = MemorySize.ofBytes(suspend.wantedBytes());
    node.workers()
        .execute(
            () -> {
              try {
                if (!suspensions.suspend(
                    booking, Suspensions.BY_RECLAIM, wanted, suspend.timeoutNs())) {
                  return; // its owner was faster
                }
                MemorySize freed =
                    lease == null ? held : lease.mover().map(MemoryMover::moved).orElse(held);
                log.info("suspended: id={}: {}", booking.id, suspend.reason());
                node.listeners()
                    .publish(at -> new GpuEvent.Suspended(at, booking.id, freed, suspend.reason()));
              } catch (RuntimeException e) {
                log.warn("cannot be suspended: id={}: {}", booking.id, e.getMessage());
                outcomes.add(
                    () -> planner.suspendFailed(booking.id, String.valueOf(e.getMessage())));
              }
            });
  }

  private void resume(ReclaimPlanner planner, Booking booking, ReclaimAction.Resume resume) {
    node.workers()
        .execute(
            () -> {
              if (!letGoOn(booking, resume.reason())) {
                outcomes.add(() -> planner.resumeFailed(booking.id, node.clock().nanoTime()));
              }
            });
  }

  private boolean letGoOn(Booking booking, String reason) {
    try {
      if (!suspensions.resume(booking, Suspensions.BY_RECLAIM, RESUME_NS)) {
        return !booking.suspended; // its owner was faster, or wants it suspended
      }
    } catch (RuntimeException e) {
      log.warn("cannot be resumed yet: id={}: {}", booking.id, e.getMessage());
      return false;
    }
    log.info("resumed: id={}: {}", booking.id, reason);
    node.listeners().publish(at -> new GpuEvent.Resumed(at, booking.id, reason));
    return true;
  }

  private void end(Booking booking, ReclaimAction.End end) {
    List<ProcessHandle> processes = processes(booking);
    List<Long> pids = processes.stream().map(ProcessHandle::pid).toList();
    if (pids.isEmpty()) {
      return; // they have ended in the meantime
    }
    log.warn(
        "{}: id={} processes={}: {}",
        end.kill() ? "killed" : "told to end",
        booking.id,
        pids,
        end.reason());
    // Published before the processes end, so that a process waiting for them can learn the reason.
    node.listeners().publish(at -> new GpuEvent.EndedByReclaim(at, booking.id, pids, end.reason()));
    for (ProcessHandle process : processes) {
      boolean ignored = end.kill() ? process.destroyForcibly() : process.destroy();
    }
  }

  /**
   * The processes under a virtual GPU that may be ended. A pid may be reused before its handle is
   * looked up. The handle is the right one if the pid still belongs to the virtual GPU afterwards.
   */
  private List<ProcessHandle> processes(Booking booking) {
    EnforcedLease lease = booking.enforced();
    if (lease == null) {
      return List.of();
    }
    Set<Long> untouchable = untouchable();
    List<ProcessHandle> found =
        lease.visibleProcesses().stream()
            .filter(pid -> !untouchable.contains(pid))
            .flatMap(pid -> ProcessHandle.of(pid).stream())
            .toList();
    Set<Long> still = found.isEmpty() ? Set.of() : Set.copyOf(lease.visibleProcesses());
    return found.stream().filter(process -> still.contains(process.pid())).toList();
  }

  /** Stops. Suspended tenants stay suspended, for the next holder of the seat to take over. */
  public void stop() {
    closed = true;
    Thread running = thread;
    if (running != null) {
      LockSupport.unpark(running);
    }
  }

  /**
   * Stops, and resumes suspended tenants as far as there is room, except those that their owner has
   * suspended.
   */
  @Override
  public void close() {
    stop();
    suspensions.close();
    for (Booking booking : table.bookings()) {
      if (booking.suspended || booking.suspending.isLocked()) {
        try {
          suspensions.resumeAtTheEnd(booking, AT_THE_END_NS);
        } catch (RuntimeException e) {
          log.warn(
              "stays suspended until a process opens the GPUs again: id={}: {}",
              booking.id,
              e.getMessage());
        }
      }
    }
  }
}
