package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.metering.LeaseAccount;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.wire.LeaseSnapshot;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A virtual GPU in the book of the process that decides about its GPU. Guarded by the {@link
 * LeaseTable}'s lock, except for final and volatile fields.
 */
public final class Booking {
  /** The {@link #suspension} of a virtual GPU whose owner asked for it. */
  public static final String BY_OWNER = "owner";

  private static final Logger log = LoggerFactory.getLogger(Booking.class);
  private static final int LEAST_PERMILLE = 10;
  private static final int MOST_SUSPENDERS = 4;

  /** Its id on the node. */
  public final String id;

  /** The GPUs that it is cut from, in order; more than one for a gang. */
  public final List<GpuBook> books;

  /** The process that acquired it. */
  public final ProcessIdentity owner;

  /** The key by which its owner's secret is recognised. */
  public final String ownerKey;

  /** The member of the seat's group that it belongs to; empty: the seat's user, or root. */
  public final Optional<Member> member;

  /** Its owner's calls. */
  public final BookedCalls calls;

  /** The gate that its schedulers open and shut. */
  public final TenantGate gate;

  /** Its metered use. */
  final LeaseAccount account;

  /** Programs started under it that may not have attached yet. */
  final Set<ProcessIdentity> programs = new LinkedHashSet<>();

  /** Whether the owner has closed it or is dead, and its last call has left. */
  volatile boolean ended;

  /** Whether its processes are suspended, or are being suspended. */
  public volatile boolean suspended;

  /** At whose request they are suspended or about to be, as on disk; empty if they are not. */
  volatile Optional<String> suspension = Optional.empty();

  /** Taken over while suspended, completely or half; must be put in order first. */
  public volatile boolean unsettled;

  /** Held while suspending or resuming it; taken before the table's lock. */
  public final ReentrantLock suspending = new ReentrantLock();

  /** A permit for each that may hold {@link #suspending} or wait for it. */
  public final Semaphore suspenders = new Semaphore(MOST_SUSPENDERS);

  /** Whether it is booked out. */
  public volatile boolean released;

  private volatile @Nullable GpuUsage finalUsage;

  /** The backend chosen when it was granted; null if none was needed. */
  final @Nullable String chosen;

  /**
   * Whether that backend gives it a spatial part of the GPU, so that its programs take no turns.
   */
  final boolean spatial;

  /** Whether that backend sets a part of the GPU aside for it. Set once, when it is booked. */
  boolean part;

  /** Whether its backend is preparing, moving or closing it. */
  boolean inWork;

  /** Whether its owner has closed it, and nobody has looked yet whether it can be given back. */
  volatile boolean ending;

  /** Whether it is given back as soon as the work of a backend has ended. */
  boolean leaving;

  /** The backend prepared for its programs; null if none yet. */
  public @Nullable String backend;

  private volatile VirtualGpuRequest request;
  private volatile @Nullable EnforcedLease enforced;

  Booking(
      String id,
      List<GpuBook> books,
      VirtualGpuRequest request,
      Asked.Claimant by,
      BookedCalls calls,
      @Nullable String chosen,
      boolean spatial) {
    this.id = id;
    this.chosen = chosen;
    this.spatial = spatial;
    this.books = List.copyOf(books);
    this.request = request;
    this.owner = by.process();
    this.ownerKey = by.ownerKey();
    this.member = by.member();
    this.calls = calls;
    this.account = new LeaseAccount(id, request.name(), gpus());
    this.gate = gate(id, books, calls, request);
    calls.booked(this, gate);
  }

  private static TenantGate gate(
      String id, List<GpuBook> books, BookedCalls calls, VirtualGpuRequest request) {
    GpuBook first = books.get(0);
    if (books.size() == 1) {
      return new TenantGate(id, first.seat, first.scheduler, calls.gate(), request);
    }
    return new TenantGate(
        id,
        books.stream().map(book -> book.seat).toList(),
        books.stream().map(book -> book.scheduler).toList(),
        calls.gate(),
        request,
        books.stream().mapToLong(book -> book.shortestTurnNs).max().orElse(0));
  }

  /** The first of its GPUs. */
  public PhysicalGpu gpu() {
    return books.get(0).gpu;
  }

  /** {@return the ids of its GPUs} */
  public List<GpuId> gpus() {
    return books.stream().map(book -> book.gpu.id()).toList();
  }

  /** Its part of each GPU's time, in percent: the least that any of its GPUs gives. */
  private double entitledPercent() {
    return books.stream().mapToDouble(book -> book.entitledPercent(request)).min().orElse(0);
  }

  int entitledPermille() {
    return Math.max(LEAST_PERMILLE, (int) Math.round(10 * entitledPercent()));
  }

  /** {@return the granted terms} */
  public VirtualGpuRequest request() {
    return request;
  }

  void request(VirtualGpuRequest replaced) {
    request = replaced;
  }

  /** {@return the lease prepared for its programs; null if none yet} */
  public @Nullable EnforcedLease enforced() {
    return enforced;
  }

  void enforced(EnforcedLease lease) {
    enforced = lease;
    gate.enforce(lease);
  }

  /** Lets its programs work if they have a spatial part of the GPU, and so take no turns. */
  public void goOnInSpace() {
    if (enforced instanceof SpatialLease lease) {
      books.get(0).seat.take();
      try {
        lease.goOn();
      } finally {
        books.get(0).seat.leave();
      }
    }
  }

  /** Whether only its owner may resume it. */
  public boolean isSuspendedByOwner() {
    return suspension.filter(BY_OWNER::equals).isPresent();
  }

  /**
   * Whether processes are under it, or may still attach, or its backend is at work; {@link
   * #forgetEnded} before it.
   */
  boolean hasProcesses() {
    if (inWork) {
      return true;
    }
    EnforcedLease lease = enforced;
    if (lease != null && keepsProcesses(lease)) {
      return true;
    }
    return !programs.isEmpty();
  }

  /** Forgets programs that have ended. Call it without the table's lock: it looks for each. */
  void forgetEnded(Lock table) {
    List<ProcessIdentity> known;
    table.lock();
    try {
      known = List.copyOf(programs);
    } finally {
      table.unlock();
    }
    List<ProcessIdentity> dead = known.stream().filter(each -> !each.isAlive()).toList();
    table.lock();
    try {
      dead.forEach(programs::remove);
    } finally {
      table.unlock();
    }
  }

  /**
   * Whether any process is under it. If not, none can follow, because only processes under it start
   * more. May scan all processes of the node; call it without the table's lock.
   */
  boolean isInUse(Lock table) {
    forgetEnded(table);
    table.lock();
    try {
      if (hasProcesses()) {
        return true;
      }
    } finally {
      table.unlock();
    }
    EnforcedLease lease = enforced;
    return lease != null && lease.mayAttachYet();
  }

  /** If the owner itself was attached, closing the lease has detached it, reported or not. */
  private boolean keepsProcesses(EnforcedLease lease) {
    return ended ? lease.hasProcessesBesides(owner.pid()) : !lease.processes().isEmpty();
  }

  /** {@return its use} */
  public GpuUsage usage() {
    GpuUsage last = finalUsage;
    return last != null ? last : gate.usage(calls.usage()).with(account.slowdown());
  }

  /** Its use until it is booked out, which is the last moment to read it. */
  GpuUsage finalUsage() {
    GpuUsage usage = usage();
    finalUsage = usage;
    return usage;
  }

  LeaseRecord record() {
    return new LeaseRecord(
        id,
        gpus(),
        request,
        owner,
        Optional.ofNullable(backend),
        List.copyOf(programs),
        suspension,
        Optional.ofNullable(chosen),
        ownerKey,
        member);
  }

  /**
   * Updates the record on disk if possible; otherwise the next holder of the seat sees the old
   * terms.
   */
  void rewrite(@Nullable LeaseDirectory disk) {
    if (disk != null) {
      try {
        disk.write(record());
      } catch (VgpuException e) {
        log.warn("{}", e.getMessage());
      }
    }
  }

  /** The part of its memory that is in host memory. */
  private MemorySize memorySuspended() {
    EnforcedLease lease = enforced;
    if (!suspended || lease == null) {
      return MemorySize.ZERO;
    }
    return lease.mover().map(MemoryMover::moved).orElseGet(lease::memoryUsed);
  }

  /** What is wrong with its GPUs, or with its part of a GPU. */
  private Optional<String> impaired() {
    EnforcedLease lease = enforced;
    return books.stream()
        .filter(book -> book.condition.health() != GpuHealth.HEALTHY)
        .map(book -> "gpu=" + book.gpu.id() + ": " + book.condition.reason())
        .findFirst()
        .or(() -> lease == null ? Optional.empty() : lease.impaired());
  }

  /** {@return these leases, as callers see them} */
  public static List<GpuLease> snapshots(List<Booking> bookings) {
    return bookings.stream().<GpuLease>map(Booking::snapshot).toList();
  }

  /** Has the entitlement that was last given to it. */
  LeaseSnapshot snapshot() {
    EnforcedLease lease = enforced;
    return new LeaseSnapshot(
        id,
        gpus(),
        request,
        owner.pid(),
        entitledPercent(),
        lease == null ? List.of() : List.copyOf(lease.processes()),
        usage(),
        suspended,
        memorySuspended(),
        Optional.ofNullable(backend != null ? backend : chosen),
        impaired(),
        lease == null ? 0 : lease.passedThrough(),
        lease == null ? Optional.empty() : lease.preemption(),
        lease == null ? Optional.empty() : lease.preemptionReason());
  }
}
