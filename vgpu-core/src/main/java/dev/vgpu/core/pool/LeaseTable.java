package dev.vgpu.core.pool;

import static java.util.Objects.requireNonNull;

import dev.vgpu.FailureMode;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuState;
import dev.vgpu.GpuUsage;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.UrgencyQueue;
import dev.vgpu.core.seat.LeaseDirectory;
import dev.vgpu.core.seat.LeaseRecord;
import dev.vgpu.core.seat.ProcessIdentity;
import dev.vgpu.spi.EnforcedLease;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Who holds what of a node's GPUs, and who waits for it: the books of the process that decides. Its
 * lock is taken before a GPU's seat, never after. Safe for use by several threads.
 */
final class LeaseTable {
  private static final Logger log = LoggerFactory.getLogger(LeaseTable.class);

  private final Node node;
  private final List<GpuSlot> slots;
  private final Enforcements enforcements;
  private final @Nullable LeaseDirectory disk;
  private final ReentrantLock lock = new ReentrantLock();
  private final UrgencyQueue<PendingRequest> pending = new UrgencyQueue<>();
  private final SeatMeter meter;

  /** Makes an empty one; leases are on disk, and what is used in a directory, or null: nowhere. */
  LeaseTable(
      Node node,
      List<GpuSlot> slots,
      Enforcements enforcements,
      @Nullable LeaseDirectory disk,
      @Nullable Path usage) {
    this.meter = new SeatMeter(node, this::bookings, usage);
    this.node = node;
    this.slots = slots;
    this.enforcements = enforcements;
    this.disk = disk;
  }

  List<GpuSlot> slots() {
    return slots;
  }

  SeatMeter meter() {
    return meter;
  }

  List<GpuLease> leases() {
    return snapshots(bookingsOf(slots));
  }

  List<GpuState> states() {
    return SharingStates.of(slots, bookings(), node.settings());
  }

  List<Booking> bookings() {
    return bookingsOf(slots);
  }

  Optional<Booking> booking(String id) {
    return bookings().stream().filter(booking -> booking.id.equals(id)).findFirst();
  }

  private List<Booking> bookingsOf(List<GpuSlot> of) {
    lock.lock();
    try {
      List<Booking> bookings = new ArrayList<>();
      of.forEach(slot -> bookings.addAll(slot.bookings));
      return bookings;
    } finally {
      lock.unlock();
    }
  }

  private static List<GpuLease> snapshots(List<Booking> bookings) {
    List<GpuLease> snapshots = new ArrayList<>();
    bookings.forEach(booking -> snapshots.add(booking.snapshot()));
    return snapshots;
  }

  // ---- acquiring

  /** Grants a request now, or refuses it. */
  Booking acquire(Asked asked) {
    VirtualGpuRequest request = asked.request();
    String refusal;
    lock.lock();
    try {
      checkPossible(asked);
      boolean first = pending.isFirstInLine(request.preemptionClass());
      Booking booking = first ? tryGrant(asked) : null;
      if (booking != null) {
        pending.servedWithoutWaiting(request.preemptionClass());
        return booking;
      }
      refusal = refusal(request, first ? "" : "; " + pending.size() + " requests wait in front");
    } finally {
      lock.unlock();
    }
    publishRefused(request, refusal);
    throw new GpuCapacityException(refusal, snapshots(bookingsOf(allowed(request))));
  }

  void publishRefused(VirtualGpuRequest request, String refusal) {
    node.listeners().publish(at -> new GpuEvent.Refused(at, request.name(), request, refusal));
  }

  /** Grants a request as soon as it fits and its turn has come. */
  void enqueue(PendingRequest waiting) {
    lock.lock();
    try {
      checkPossible(waiting.asked);
      pending.add(waiting);
      serve();
    } finally {
      lock.unlock();
    }
  }

  /** Takes a waiting request out and says why it did not fit; empty if it was settled meanwhile. */
  Optional<String> giveUp(PendingRequest waiting) {
    lock.lock();
    try {
      if (!pending.remove(waiting)) {
        return Optional.empty();
      }
      String refusal = refusal(waiting.asked.request(), "; waited until the timeout");
      serve(); // it may have been in front of others that fit
      return Optional.of(refusal);
    } finally {
      lock.unlock();
    }
  }

  /** Sends away all who wait on behalf of an owner that closes. */
  void failPending(Object owner) {
    lock.lock();
    try {
      List<PendingRequest> others = new ArrayList<>();
      for (PendingRequest next = pending.poll(); next != null; next = pending.poll()) {
        if (next.asked.by().owner() == owner) {
          next.fail(new IllegalStateException("the pool was closed"));
        } else {
          others.add(next);
        }
      }
      others.forEach(pending::add);
      serve();
    } finally {
      lock.unlock();
    }
  }

  /** Grants to those who wait, as far as it goes: nobody passes the one in front. */
  private void serve() {
    for (PendingRequest next = pending.peek(); next != null; next = pending.peek()) {
      try {
        Booking booking = tryGrant(next.asked);
        if (booking == null) {
          return;
        }
        pending.poll();
        next.grant(booking);
      } catch (VgpuException e) { // the lease could not be written
        pending.poll();
        next.fail(e);
      }
    }
  }

  private @Nullable Booking tryGrant(Asked asked) {
    VirtualGpuRequest request = asked.request();
    GpuSlot slot = place(request);
    if (slot == null) {
      return null;
    }
    String id = node.newLeaseId(request.name(), disk);
    if (disk != null) {
      disk.write(
          new LeaseRecord(
              id, slot.gpu.id(), request, asked.by().process(), Optional.empty(), List.of()));
    }
    Booking booking = book(id, slot, asked);
    meter.opened(booking);
    node.listeners().publish(at -> new GpuEvent.Acquired(at, id, slot.gpu.id(), request));
    return booking;
  }

  private Booking book(String id, GpuSlot slot, Asked asked) {
    Booking booking =
        new Booking(
            id,
            slot,
            asked.request(),
            asked.by().process(),
            asked.by().calls(id, slot, asked.request()));
    slot.add(booking);
    return booking;
  }

  /** The GPU on which it fits most tightly, so that large requests find room elsewhere. */
  private @Nullable GpuSlot place(VirtualGpuRequest request) {
    return allowed(request).stream()
        .filter(slot -> slot.fits(request))
        .filter(
            slot -> request.failureMode() == FailureMode.OPEN || missing(slot, request).isEmpty())
        .min(
            Comparator.<GpuSlot>comparingInt(
                    slot -> request.computePercent().isPresent() ? 0 : slot.bookings.size())
                .thenComparingInt(slot -> slot.freePercent(request.preemptionClass()))
                .thenComparing(GpuSlot::freeMemory))
        .orElse(null);
  }

  private List<GpuSlot> allowed(VirtualGpuRequest request) {
    return slots.stream()
        .filter(slot -> request.gpu().isEmpty() || request.gpu().get().equals(slot.gpu.id()))
        .toList();
  }

  private List<String> missing(GpuSlot slot, VirtualGpuRequest request) {
    List<String> missing = InProcessBackend.CAPABILITIES.missingFor(request.requires());
    // Backends are looked at only where they are needed: to load them takes time.
    return missing.isEmpty()
        ? missing
        : enforcements.capabilities(slot.gpu).missingFor(request.requires());
  }

  private void checkPossible(Asked asked) {
    VirtualGpuRequest request = asked.request();
    if (asked.by().isClosed()) {
      throw new IllegalStateException("the pool is closed");
    }
    List<GpuSlot> allowed = allowed(request);
    if (allowed.isEmpty()) {
      List<GpuId> ids = slots.stream().map(slot -> slot.gpu.id()).toList();
      throw new IllegalArgumentException(
          "no such GPU in this pool: asked " + request + ", gpus=" + ids);
    }
    if (allowed.stream()
        .noneMatch(slot -> request.memory().compareTo(slot.gpu.usableMemory()) <= 0)) {
      throw new IllegalArgumentException(
          "more memory than any GPU can give: asked "
              + request
              + "; "
              + allowed.stream()
                  .map(slot -> slot.gpu.id() + " usableMemory=" + slot.gpu.usableMemory())
                  .collect(Collectors.joining(", ")));
    }
    checkEnforceable(request, allowed);
  }

  /** Refuses, or serves with a warning, a request that demands more than can be enforced. */
  private void checkEnforceable(VirtualGpuRequest request, List<GpuSlot> allowed) {
    if (allowed.stream().anyMatch(slot -> missing(slot, request).isEmpty())) {
      return;
    }
    String lack =
        allowed.stream()
            .map(slot -> slot.gpu.id() + " lacks " + missing(slot, request))
            .collect(Collectors.joining("; "));
    if (request.failureMode() == FailureMode.REFUSE) {
      throw new VgpuException("no backend can enforce what is demanded: " + request + "; " + lack);
    }
    log.warn("served without what it demands: {}; {}", request, lack);
  }

  private String refusal(VirtualGpuRequest request, String more) {
    StringBuilder text = new StringBuilder("no GPU has room: asked ").append(request).append(more);
    allowed(request).forEach(slot -> text.append("; ").append(slot.occupation(request)));
    return text.toString();
  }

  // ---- changing and giving back

  /** Replaces what a virtual GPU holds, or throws and changes nothing. */
  void resize(Booking booking, VirtualGpuRequest asked) {
    VirtualGpuRequest before;
    lock.lock();
    try {
      before = booking.request();
      checkSameElsewhere(before, asked, booking.id, booking.slot.gpu);
      if (booking.calls.isClosed() || booking.released) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + booking.id);
      }
      GpuSlot slot = booking.slot;
      slot.giveBack(before);
      boolean resized = false;
      try {
        if (!slot.fits(asked)) {
          throw new GpuCapacityException(
              "a virtual GPU cannot be resized: id=" + booking.id + ": " + refusal(asked, ""),
              snapshots(List.copyOf(slot.bookings)));
        }
        String obstacle = booking.calls.tryResize(asked, booking.gate);
        if (obstacle != null) {
          throw cannotResize(booking.id, asked, obstacle, booking.snapshot());
        }
        resized = true;
      } finally {
        slot.take(resized ? asked : before);
      }
      booking.request(asked);
      slot.divide();
      rewrite(booking);
      serve();
    } finally {
      lock.unlock();
    }
    node.listeners().publish(at -> new GpuEvent.Resized(at, booking.id, before, asked));
  }

  static GpuCapacityException cannotResize(
      String id, VirtualGpuRequest asked, String obstacle, GpuLease holder) {
    return new GpuCapacityException(
        "a virtual GPU cannot be resized: id=" + id + " asked " + asked + "; " + obstacle,
        List.of(holder));
  }

  static void checkSameElsewhere(
      VirtualGpuRequest before, VirtualGpuRequest asked, String id, PhysicalGpu gpu) {
    boolean sameGpu = asked.gpu().isEmpty() || asked.gpu().get().equals(gpu.id());
    if (!sameGpu
        || !asked.name().equals(before.name())
        || !asked.requires().equals(before.requires())
        || asked.failureMode() != before.failureMode()) {
      throw new IllegalArgumentException(
          "a resize keeps the GPU, the name and the demanded capabilities: id="
              + id
              + " holds "
              + before
              + ", asked "
              + asked);
    }
  }

  /** What is on disk follows, if it can; the next holder of the seat would see the old state. */
  private void rewrite(Booking booking) {
    if (disk != null) {
      try {
        disk.write(booking.record());
      } catch (VgpuException e) {
        log.warn("{}", e.getMessage());
      }
    }
  }

  /** A virtual GPU was closed, or its owner is dead, and its last call has left. */
  void ended(Booking booking) {
    booking.ended = true;
    releaseIfUnused(booking);
  }

  /** Books out a virtual GPU that has ended, when nothing is under it any more. */
  void releaseIfUnused(Booking booking) {
    GpuUsage usage;
    lock.lock();
    try {
      if (!booking.ended || booking.released || booking.hasProcesses()) {
        return;
      }
      booking.released = true;
      usage = booking.finalUsage();
      booking.gate.end();
      EnforcedLease enforced = booking.enforced();
      if (enforced != null) {
        enforced.close();
      }
      if (disk != null) {
        disk.remove(booking.id);
      }
      booking.slot.remove(booking);
      serve();
    } finally {
      lock.unlock();
    }
    meter.closed(booking, usage);
    booking.calls.released();
    node.listeners().publish(at -> new GpuEvent.Closed(at, booking.id, usage));
  }

  /** Whether a virtual GPU is kept only for programs whose end nobody tells. */
  boolean releaseUnused() {
    boolean kept = false;
    for (Booking booking : bookings()) {
      if (booking.ended) {
        releaseIfUnused(booking);
        kept |= !booking.released;
      }
    }
    return kept;
  }

  // ---- programs

  /** Makes a virtual GPU ready for programs; once. */
  EnforcedLease enforce(Booking booking, EnforcedLease.Listener listener) {
    lock.lock();
    try {
      EnforcedLease before = booking.enforced();
      if (before != null) {
        return before;
      }
      if (booking.released) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + booking.id);
      }
      enforcements.checkUsable();
      Path directory =
          requireNonNull(disk, "where backends work, leases are on disk").of(booking.id);
      EnforcedLease lease = enforcements.prepare(booking, directory, listener);
      booking.enforced(lease);
      booking.slot.enforced(booking);
      rewrite(booking);
      return lease;
    } finally {
      lock.unlock();
    }
  }

  /** Keeps a virtual GPU as long as this program lives. */
  void started(Booking booking, ProcessIdentity program) {
    lock.lock();
    try {
      booking.programs.removeIf(other -> !other.isAlive());
      if (!booking.released && booking.programs.size() < LeaseRecord.MOST_PROGRAMS) {
        booking.programs.add(program);
        rewrite(booking);
      }
    } finally {
      lock.unlock();
    }
  }

  // ---- taking over

  /** Books what was granted before, whether or not it fits. */
  Booking restore(LeaseRecord record, GpuSlot slot, Asked.Claimant by) {
    lock.lock();
    try {
      Booking booking = book(record.id(), slot, new Asked(record.request(), by));
      booking.programs.addAll(record.programs());
      booking.backend = record.backend().orElse(null);
      meter.restored(booking);
      rewrite(booking);
      return booking;
    } finally {
      lock.unlock();
    }
  }
}
