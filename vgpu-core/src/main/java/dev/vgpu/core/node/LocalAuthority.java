package dev.vgpu.core.node;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.book.Asked;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.PendingRequest;
import dev.vgpu.core.book.RoomMaking;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.discovery.InProcessBackend;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.metering.Meter;
import dev.vgpu.core.reclaim.Suspensions;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.UsageRecord;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The authority when this JVM decides, for itself alone or for all processes of the node.
 * Thread-safe.
 */
public final class LocalAuthority implements Authority {
  private static final Logger log = LoggerFactory.getLogger(LocalAuthority.class);

  private final Node node;
  private final LeaseTable table;
  private final Enforcements enforcements;
  private final Discovery discovery;
  private final Suspensions suspensions;
  private final @Nullable BackendStatus runDirectory;

  /**
   * Creates an authority. {@code runDirectory} says why this JVM works alone although it should
   * not; null if there is no such reason.
   */
  public LocalAuthority(
      Node node,
      LeaseTable table,
      Enforcements enforcements,
      Discovery discovery,
      Suspensions suspensions,
      @Nullable BackendStatus runDirectory) {
    this.node = node;
    this.table = table;
    this.enforcements = enforcements;
    this.discovery = discovery;
    this.suspensions = suspensions;
    this.runDirectory = runDirectory;
  }

  /** {@return the books} */
  public LeaseTable table() {
    return table;
  }

  /** The books, if this process still decides. */
  private LeaseTable books() {
    table.checkDecides();
    return table;
  }

  private static Lease lease(Booking booking) {
    return (Lease) booking.calls;
  }

  @Override
  public Lease acquire(LocalClaim claim) {
    return lease(books().acquire(new Asked(claim.request(), claim)));
  }

  @Override
  public Optional<Lease> tryAcquire(LocalClaim claim, long timeoutNs) throws InterruptedException {
    long startNs = node.clock().nanoTime();
    Thread thread = Thread.currentThread();
    PendingRequest waiting =
        new PendingRequest(
            new Asked(claim.request(), claim), settled -> LockSupport.unpark(thread));
    books().enqueue(waiting);
    boolean interrupted = false;
    boolean isBeingSettled = false;
    while (!waiting.isSettled()) {
      interrupted |= Thread.interrupted();
      long leftNs = timeoutNs - (node.clock().nanoTime() - startNs);
      if (isBeingSettled) {
        LockSupport.park(this);
      } else if (interrupted || leftNs <= 0) {
        Optional<String> refusal = table.giveUp(waiting);
        if (refusal.isPresent()) {
          if (interrupted) {
            throw new InterruptedException();
          }
          table.publishRefused(claim.request(), refusal.get());
          return Optional.empty();
        }
        isBeingSettled = true;
      } else {
        LockSupport.parkNanos(this, leftNs);
      }
    }
    if (interrupted) {
      thread.interrupt();
    }
    return Optional.of(lease(waiting.booking()));
  }

  @Override
  public void resize(Lease lease, VirtualGpuRequest request) {
    books().resize(booking(lease), request);
  }

  private static Booking booking(Lease lease) {
    Booking booking = lease.booking();
    if (booking == null) {
      throw new SeatLostException("another process decides about " + lease.id);
    }
    return booking;
  }

  @Override
  public List<String> makeRoom(VirtualGpuRequest request) {
    return makeRoom(request, Optional.empty());
  }

  /** The same for a member of the seat's group: moves its own leases only. */
  public List<String> makeRoom(VirtualGpuRequest request, Optional<Member> member) {
    List<String> moved = new RoomMaking(table, enforcements).makeRoom(request, member);
    moved.forEach(each -> log.info("moved to make room: {}", each));
    return moved;
  }

  @Override
  public void suspend(String id, long timeoutNs) {
    Booking booking = booking(id);
    EnforcedLease enforced = booking.enforced();
    MemorySize used = enforced == null ? MemorySize.ZERO : enforced.memoryUsed();
    if (suspensions.suspend(booking, Booking.BY_OWNER, Suspensions.ALL, capped(timeoutNs))) {
      MemorySize held =
          enforced == null ? used : enforced.mover().map(MemoryMover::moved).orElse(used);
      log.info("suspended on request: id={}", id);
      publish(at -> new GpuEvent.Suspended(at, id, held, "it was asked for"));
    }
  }

  @Override
  public void resume(String id, long timeoutNs) {
    if (suspensions.resume(booking(id), Booking.BY_OWNER, capped(timeoutNs))) {
      log.info("resumed on request: id={}", id);
      publish(at -> new GpuEvent.Resumed(at, id, "it was asked for"));
    }
  }

  /** A client can send any number. */
  private static long capped(long timeoutNs) {
    return Math.max(1, Math.min(timeoutNs, Suspensions.LONGEST.toNanos()));
  }

  private Booking booking(String id) {
    return books()
        .booking(id)
        .orElseThrow(() -> new IllegalStateException("no such virtual GPU: id=" + id));
  }

  @Override
  public void ended(Lease lease) {
    books().ends().ended(booking(lease));
  }

  @Override
  public void failPending(Object owner) {
    table.failPending(owner);
  }

  @Override
  public List<GpuLease> leases() {
    return books().leases();
  }

  /** {@return the bookings of all leases of the node} */
  public List<Booking> bookings() {
    return books().bookings();
  }

  @Override
  public List<UsageRecord> usageSince(Instant since) {
    return books().meter().since(since);
  }

  /** {@return a part of the use of some virtual GPUs; see {@link Meter#part}} */
  public Meter.Part usagePart(Instant since, String from, Predicate<String> isWanted) {
    return books().meter().part(since, from, isWanted);
  }

  @Override
  public List<GpuState> states() {
    return books().states();
  }

  @Override
  public List<BackendChoice> explain(VirtualGpuRequest request) {
    return books().explain(request);
  }

  @Override
  public List<GpuEvent> recentEvents() {
    return node.listeners().recent();
  }

  @Override
  public List<BackendStatus> backends() {
    List<BackendStatus> statuses = new ArrayList<>(discovery.statuses());
    statuses.add(InProcessBackend.status());
    statuses.addAll(enforcements.statuses());
    if (runDirectory != null) {
      statuses.add(runDirectory);
    }
    return statuses;
  }

  @Override
  public Capabilities capabilities(Lease lease) {
    return capabilities(booking(lease));
  }

  /** {@return what is enforced for a booking} */
  public Capabilities capabilities(Booking booking) {
    return table.choices().capabilities(booking);
  }

  @Override
  public GpuUsage usage(Lease lease) {
    return booking(lease).usage();
  }

  @Override
  public ProgramTerms terms(Lease lease, Optional<Path> program) {
    return terms(booking(lease), program);
  }

  /**
   * {@return what is needed to run a program under a booking} If {@code program} is present, it is
   * checked.
   */
  public ProgramTerms terms(Booking booking, Optional<Path> program) {
    books().checkNotHeldBack(booking);
    EnforcedLease enforced = table.enforce(booking);
    books().checkNotHeldBack(booking); // that may have taken a while
    program.ifPresent(enforced::check);
    Map<String, String> variables = new LinkedHashMap<>();
    variables.putAll(discovery.environment(booking.gpus()));
    variables.putAll(enforced.environment());
    return new ProgramTerms(
        variables, enforced.launcher(), enforcements.stack(String.valueOf(booking.backend)), false);
  }

  /** Takes over what an earlier holder of the seat had prepared for programs. */
  public void takeOver(Booking booking) {
    if (booking.backend != null) {
      try {
        EnforcedLease ignored = table.enforce(booking);
      } catch (RuntimeException e) {
        // Files that a tenant has damaged must not prevent this process from taking the seat over.
        log.error("the programs of a virtual GPU cannot be taken over: id={}", booking.id, e);
      }
    }
  }

  @Override
  public void started(Lease lease, ProcessIdentity program) {
    books().started(booking(lease), program);
  }

  @Override
  public void reclaimable(Lease lease) {}

  @Override
  public void attached(Lease lease) {
    booking(lease).gate.countProcessesOnly(lease.attachedCallsNs());
  }

  @Override
  public void publish(Function<Instant, GpuEvent> event) {
    node.listeners().publish(event);
  }

  /** {@return a status that says why the run directory is not used} */
  public static BackendStatus unusable(VgpuException why) {
    return BackendStatus.ofUnavailable("seat", String.valueOf(why.getMessage()));
  }
}
