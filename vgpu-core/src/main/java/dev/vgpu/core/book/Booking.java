package dev.vgpu.core.book;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuUsage;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.metering.LeaseAccount;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.wire.LeaseSnapshot;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.MemoryMover;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A virtual GPU in the books of who decides about its GPU. Guarded by the {@link LeaseTable}'s
 * lock, but for the finals and what is volatile.
 */
public final class Booking {
  /** What {@link #suspension} says where the owner of the virtual GPU asked for it. */
  public static final String BY_OWNER = "owner";

  private static final int LEAST_PERMILLE = 10;

  /** Its name on the node. */
  public final String id;

  /** The GPUs that it is cut from, in their order; more than one: a gang. */
  public final List<GpuSlot> slots;

  /** The process that acquired it. */
  public final ProcessIdentity owner;

  /** What its owner's secret is recognised by. */
  public final String ownerKey;

  /** Its owner's calls. */
  public final BookedCalls calls;

  /** What its schedulers open and shut. */
  public final TenantGate gate;

  /** What is written down of it. */
  final LeaseAccount account;

  /** Programs that were started under it, which may not have attached yet. */
  final List<ProcessIdentity> programs = new ArrayList<>();

  /** The owner has closed it or is dead, and its last call has left. */
  volatile boolean ended;

  /** Its processes are suspended, or are being so. */
  public volatile boolean suspended;

  /** On whose behalf they are, as it is on disk; empty: they are not, and are not about to be. */
  volatile Optional<String> suspension = Optional.empty();

  /** Taken over suspended, or half so: to be put in order first. */
  public volatile boolean unsettled;

  /** Held by who suspends it or lets it go on; taken before the table's lock. */
  public final ReentrantLock suspending = new ReentrantLock();

  /** It is booked out. */
  public volatile boolean released;

  private volatile @Nullable GpuUsage finalUsage;

  /** What was chosen when it was granted; null: none was needed. */
  final @Nullable String chosen;

  /** Whether that gives it a part of the GPU in space, so that its programs take no turns. */
  final boolean spatial;

  /** What was prepared for its programs; null: nothing yet. */
  public @Nullable String backend;

  private volatile VirtualGpuRequest request;
  private volatile @Nullable EnforcedLease enforced;

  Booking(
      String id,
      List<GpuSlot> slots,
      VirtualGpuRequest request,
      ProcessIdentity owner,
      String ownerKey,
      BookedCalls calls,
      @Nullable String chosen,
      boolean spatial) {
    this.id = id;
    this.chosen = chosen;
    this.spatial = spatial;
    this.slots = List.copyOf(slots);
    this.request = request;
    this.owner = owner;
    this.ownerKey = ownerKey;
    this.calls = calls;
    this.account = new LeaseAccount(id, request.name(), gpus());
    this.gate = gate(id, slots, calls, request);
    calls.booked(this, gate);
  }

  private static TenantGate gate(
      String id, List<GpuSlot> slots, BookedCalls calls, VirtualGpuRequest request) {
    GpuSlot first = slots.get(0);
    if (slots.size() == 1) {
      return new TenantGate(id, first.seat, first.scheduler, calls.gate(), request);
    }
    return new TenantGate(
        id,
        slots.stream().map(slot -> slot.seat).toList(),
        slots.stream().map(slot -> slot.scheduler).toList(),
        calls.gate(),
        request,
        slots.stream().mapToLong(slot -> slot.shortestTurnNs).max().orElse(0));
  }

  /** The first of its GPUs. */
  public PhysicalGpu gpu() {
    return slots.get(0).gpu;
  }

  /** {@return the ids of its GPUs} */
  public List<GpuId> gpus() {
    return slots.stream().map(slot -> slot.gpu.id()).toList();
  }

  /** The percent of each GPU's time that is its own: what the one gives that gives least. */
  private double entitledPercent() {
    return slots.stream().mapToDouble(slot -> slot.entitledPercent(request)).min().orElse(0);
  }

  int entitledPermille() {
    return Math.max(LEAST_PERMILLE, (int) Math.round(10 * entitledPercent()));
  }

  /** {@return what it holds} */
  public VirtualGpuRequest request() {
    return request;
  }

  void request(VirtualGpuRequest replaced) {
    request = replaced;
  }

  /** {@return what was prepared for its programs; null: nothing yet} */
  public @Nullable EnforcedLease enforced() {
    return enforced;
  }

  void enforced(EnforcedLease lease) {
    enforced = lease;
    gate.enforce(lease);
  }

  /** Lets its programs work, where they take no turns. */
  public void goOnInSpace() {
    if (enforced instanceof SpatialLease lease) {
      slots.get(0).seat.take();
      try {
        lease.goOn();
      } finally {
        slots.get(0).seat.leave();
      }
    }
  }

  /** Whether nobody but its owner lets it go on. */
  public boolean isSuspendedByOwner() {
    return suspension.filter(BY_OWNER::equals).isPresent();
  }

  /** Whether processes are under it, or may come under it yet. */
  boolean hasProcesses() {
    EnforcedLease lease = enforced;
    if (lease != null && keepsProcesses(lease)) {
      return true;
    }
    programs.removeIf(program -> !program.isAlive());
    return !programs.isEmpty();
  }

  /**
   * Whether something is under it; if not, nothing can come, for only what is under it starts more.
   * May look at all processes of the node, not with the table's lock.
   */
  boolean isInUse(Lock table) {
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

  /** The owner that was attached itself has left by closing it, whether that is told yet or not. */
  private boolean keepsProcesses(EnforcedLease lease) {
    return ended ? lease.hasProcessesBesides(owner.pid()) : !lease.processes().isEmpty();
  }

  /** {@return what it has used} */
  public GpuUsage usage() {
    GpuUsage last = finalUsage;
    return last != null ? last : gate.usage(calls.usage()).with(account.slowdown());
  }

  /** What was used until it is booked out, which is the last moment to ask. */
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
        ownerKey);
  }

  /** What of its memory is in the host's. */
  private MemorySize memorySuspended() {
    EnforcedLease lease = enforced;
    if (!suspended || lease == null) {
      return MemorySize.ZERO;
    }
    return lease.mover().map(MemoryMover::moved).orElseGet(lease::memoryUsed);
  }

  /** What is wrong with its GPUs, or with what it stands on. */
  private Optional<String> impaired() {
    EnforcedLease lease = enforced;
    return slots.stream()
        .filter(slot -> slot.condition.health() != GpuHealth.HEALTHY)
        .map(slot -> "gpu=" + slot.gpu.id() + ": " + slot.condition.reason())
        .findFirst()
        .or(() -> lease == null ? Optional.empty() : lease.impaired());
  }

  /** With the entitlement that it was given last. */
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
