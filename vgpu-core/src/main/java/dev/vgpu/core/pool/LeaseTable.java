package dev.vgpu.core.pool;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.UrgencyQueue;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Who holds what of a node's GPUs, and who waits for it. Its lock is taken before a GPU's seat,
 * never after. Safe for use by several threads.
 */
final class LeaseTable {
  private static final int MOST_HOLDERS_NAMED = 8;

  private final Node node;
  private final List<GpuSlot> slots;
  private final NanoClock clock;
  private final ReentrantLock lock = new ReentrantLock();
  private final UrgencyQueue<PendingRequest> pending = new UrgencyQueue<>();

  LeaseTable(Node node, List<GpuSlot> slots, NanoClock clock) {
    this.node = node;
    this.slots = slots;
    this.clock = clock;
  }

  List<PhysicalGpu> gpus() {
    return slots.stream().map(slot -> slot.gpu).toList();
  }

  List<GpuLease> leases() {
    return snapshots(leasesOf(slots));
  }

  boolean isEmpty() {
    return leasesOf(slots).isEmpty();
  }

  private List<Lease> leasesOf(List<GpuSlot> of) {
    lock.lock();
    try {
      List<Lease> leases = new ArrayList<>();
      of.forEach(slot -> leases.addAll(slot.leases));
      return leases;
    } finally {
      lock.unlock();
    }
  }

  private static List<GpuLease> snapshots(List<Lease> leases) {
    return leases.stream().map(Lease::snapshot).toList();
  }

  /** Grants a request now, or refuses it. */
  Lease acquire(Asked asked) {
    VirtualGpuRequest request = asked.request();
    String refusal;
    lock.lock();
    try {
      checkPossible(asked);
      boolean first = pending.isFirstInLine(request.preemptionClass());
      Lease lease = first ? tryGrant(asked) : null;
      if (lease != null) {
        pending.servedWithoutWaiting(request.preemptionClass());
        return lease;
      }
      refusal = refusal(request, first ? "" : "; " + pending.size() + " requests wait in front");
    } finally {
      lock.unlock();
    }
    throw refused(request, refusal);
  }

  private GpuCapacityException refused(VirtualGpuRequest request, String refusal) {
    node.listeners().publish(at -> new GpuEvent.Refused(at, request.name(), request, refusal));
    return new GpuCapacityException(refusal, snapshots(leasesOf(allowed(request))));
  }

  /** Grants a request as soon as it fits and its turn has come; empty if that takes too long. */
  Optional<Lease> tryAcquire(Asked asked, long timeoutNs) throws InterruptedException {
    PendingRequest waiting = new PendingRequest(asked);
    long startNs = clock.nanoTime();
    lock.lock();
    try {
      checkPossible(asked);
      pending.add(waiting);
      serve();
    } finally {
      lock.unlock();
    }
    while (!waiting.isSettled()) {
      boolean interrupted = Thread.interrupted();
      long leftNs = timeoutNs - (clock.nanoTime() - startNs);
      if (interrupted || leftNs <= 0) {
        Optional<String> refusal = giveUp(waiting);
        if (refusal.isPresent()) {
          if (interrupted) {
            throw new InterruptedException();
          }
          node.listeners()
              .publish(
                  at ->
                      new GpuEvent.Refused(
                          at, asked.request().name(), asked.request(), refusal.get()));
          return Optional.empty();
        }
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      } else {
        LockSupport.parkNanos(this, leftNs);
      }
    }
    return Optional.of(waiting.lease());
  }

  /** Takes a waiting request out and says why it did not fit; empty if it was settled meanwhile. */
  private Optional<String> giveUp(PendingRequest waiting) {
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

  /** Replaces what a lease holds, or throws and changes nothing. */
  void resize(Lease lease, VirtualGpuRequest asked) {
    VirtualGpuRequest before;
    lock.lock();
    try {
      before = lease.request();
      checkSameElsewhere(before, asked, lease);
      if (lease.isClosed()) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + lease.id);
      }
      GpuSlot slot = lease.slot;
      slot.giveBack(before);
      boolean resized = false;
      try {
        if (!slot.fits(asked)) {
          throw new GpuCapacityException(
              "a virtual GPU cannot be resized: id=" + lease.id + ": " + refusal(asked, ""),
              snapshots(List.copyOf(slot.leases)));
        }
        String obstacle = lease.gate.tryResize(asked);
        if (obstacle != null) {
          throw new GpuCapacityException(
              "a virtual GPU cannot be resized: id="
                  + lease.id
                  + " asked "
                  + asked
                  + "; "
                  + obstacle,
              List.of(lease.snapshot()));
        }
        resized = true;
      } finally {
        slot.take(resized ? asked : before);
      }
      lease.request(asked);
      serve();
    } finally {
      lock.unlock();
    }
    node.listeners().publish(at -> new GpuEvent.Resized(at, lease.id, before, asked));
  }

  private static void checkSameElsewhere(
      VirtualGpuRequest before, VirtualGpuRequest asked, Lease lease) {
    boolean sameGpu = asked.gpu().isEmpty() || asked.gpu().get().equals(lease.slot.gpu.id());
    if (!sameGpu
        || !asked.name().equals(before.name())
        || !asked.requires().equals(before.requires())
        || asked.failureMode() != before.failureMode()) {
      throw new IllegalArgumentException(
          "a resize keeps the GPU, the name and the demanded capabilities: id="
              + lease.id
              + " holds "
              + before
              + ", asked "
              + asked);
    }
  }

  /** Books out a lease that was closed and has drained. */
  void released(Lease lease) {
    lock.lock();
    try {
      lease.slot.leases.remove(lease);
      lease.slot.giveBack(lease.request());
      serve();
    } finally {
      lock.unlock();
    }
  }

  /** Sends away all who wait on behalf of a pool that closes. */
  void failPending(NodePool pool) {
    lock.lock();
    try {
      List<PendingRequest> others = new ArrayList<>();
      for (PendingRequest next = pending.poll(); next != null; next = pending.poll()) {
        if (next.asked.pool() == pool) {
          next.fail(new IllegalStateException("the pool was closed"));
          LockSupport.unpark(next.thread);
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
      Lease lease = tryGrant(next.asked);
      if (lease == null) {
        return;
      }
      pending.poll();
      next.grant(lease);
      LockSupport.unpark(next.thread);
    }
  }

  private @Nullable Lease tryGrant(Asked asked) {
    VirtualGpuRequest request = asked.request();
    GpuSlot slot = place(request);
    if (slot == null) {
      return null;
    }
    Lease lease = new Lease(node.newLeaseId(request.name()), node, slot, asked);
    slot.take(request);
    slot.leases.add(lease);
    asked.pool().add(lease);
    node.listeners().publish(at -> new GpuEvent.Acquired(at, lease.id, slot.gpu.id(), request));
    return lease;
  }

  /** The GPU on which it fits most tightly, so that large requests find room elsewhere. */
  private @Nullable GpuSlot place(VirtualGpuRequest request) {
    return allowed(request).stream()
        .filter(slot -> slot.fits(request))
        .min(
            Comparator.<GpuSlot>comparingInt(
                    slot -> request.computePercent().isPresent() ? 0 : slot.leases.size())
                .thenComparingInt(slot -> slot.freePercent(request.preemptionClass()))
                .thenComparing(GpuSlot::freeMemory))
        .orElse(null);
  }

  private List<GpuSlot> allowed(VirtualGpuRequest request) {
    return slots.stream()
        .filter(slot -> request.gpu().isEmpty() || request.gpu().get().equals(slot.gpu.id()))
        .toList();
  }

  private void checkPossible(Asked asked) {
    VirtualGpuRequest request = asked.request();
    if (asked.pool().isClosed()) {
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
  }

  private String refusal(VirtualGpuRequest request, String more) {
    StringBuilder text = new StringBuilder("no GPU has room: asked ").append(request).append(more);
    for (GpuSlot slot : allowed(request)) {
      text.append("; ").append(slot.free(request.preemptionClass())).append(" held by ");
      if (slot.leases.isEmpty()) {
        text.append("nobody");
      }
      text.append(
          slot.leases.stream()
              .limit(MOST_HOLDERS_NAMED)
              .map(lease -> "[id=" + lease.id + " " + lease.request() + "]")
              .collect(Collectors.joining(" ")));
      if (slot.leases.size() > MOST_HOLDERS_NAMED) {
        text.append(" and ").append(slot.leases.size() - MOST_HOLDERS_NAMED).append(" more");
      }
    }
    return text.toString();
  }
}
