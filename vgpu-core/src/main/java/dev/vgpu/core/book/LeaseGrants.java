package dev.vgpu.core.book;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.VgpuException;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.Member;
import dev.vgpu.files.OpenFiles;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.GpuEvent;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.Lock;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Adds leases to the book. If a part of a GPU is set aside for a lease, the lease is in the book at
 * once, but its request is granted only when the part is there; another thread sees to that without
 * the table's lock. Guarded by the {@link LeaseTable}'s lock.
 */
public final class LeaseGrants implements WaitingLine.Desk {
  /** This many leases fit into one answer to a client that lists them. */
  public static final int MOST_LEASES = 1_000;

  /** No member of the seat's group may have more than this part of what all clients may have. */
  public static final int PARTS_FOR_MEMBERS = 4;

  private final int mostForClients = OpenFiles.part(MOST_LEASES); // each may have a file open
  private final NodeContext node;
  private final LeaseTable table;
  private final Lock lock;
  private final BackendWork work;
  private final Preparations preparations;
  private final @Nullable LeaseDirectory disk;

  /** The requests whose parts are being set aside. */
  private final Map<PendingRequest, Booking> unsettled = new LinkedHashMap<>();

  /** Creates one; {@code lock} is the table's. */
  LeaseGrants(
      NodeContext node,
      LeaseTable table,
      Lock lock,
      BackendWork work,
      Preparations preparations,
      @Nullable LeaseDirectory disk) {
    this.node = node;
    this.table = table;
    this.lock = lock;
    this.work = work;
    this.preparations = preparations;
    this.disk = disk;
  }

  @Override
  public void grant(PendingRequest waiting, List<GpuBook> on) {
    Asked asked = waiting.asked;
    VirtualGpuRequest request = asked.request();
    checkRoom(asked);
    String id = node.newLeaseId(request.name(), disk);
    List<GpuId> gpus = on.stream().map(book -> book.gpu.id()).toList();
    Optional<String> chosen =
        table
            .choices()
            .choose(on.get(0), request)
            .map(BackendChoices.Candidate::backend)
            .map(EnforcementBackend::name);
    if (disk != null) {
      disk.write(
          new LeaseRecord(
              id,
              gpus,
              request,
              asked.by().process(),
              Optional.empty(),
              List.of(),
              Optional.empty(),
              chosen,
              asked.by().ownerKey(),
              asked.by().member()));
    }
    Booking booking = book(id, on, asked, chosen);
    if (booking.part) {
      work.begin(booking);
      unsettled.put(waiting, booking);
      node.workers().execute(() -> setAside(waiting, booking));
    } else {
      granted(waiting, booking);
    }
  }

  private void granted(PendingRequest waiting, Booking booking) {
    table.meter().opened(booking);
    GpuId first = booking.gpus().get(0);
    node.listeners().publish(at -> new GpuEvent.Acquired(at, booking.id, first, booking.request()));
    waiting.grant(booking);
  }

  @Override
  public void refuse(PendingRequest waiting, String refusal, List<Booking> holders) {
    table.publishRefused(waiting.asked.request(), refusal);
    waiting.fail(new GpuCapacityException(refusal, Booking.snapshots(holders)));
  }

  /**
   * Refuses another process's request if this node already has as many virtual GPUs as it serves,
   * or if the process's user has its part of that number. This process keeps account for the
   * others, and must not run out of memory by that. Requests of this JVM itself are not limited.
   */
  void checkRoom(Asked asked) {
    if (asked.by().isAnotherProcess() && table.bookings().size() >= mostForClients) {
      throw new GpuCapacityException(
          "too many virtual GPUs on this node: limit=" + mostForClients, List.of());
    }
    Optional<Member> member = asked.by().member();
    int mostForMember = mostForClients / PARTS_FOR_MEMBERS;
    if (member.isPresent() && table.bookingsOf(member.get()).size() >= mostForMember) {
      throw new GpuCapacityException(
          "too many virtual GPUs of one user: limit=" + mostForMember, List.of());
    }
  }

  /**
   * Has a part of the GPU set aside for a booking, then grants its request. If that fails, or if
   * nobody waits for it any more, the part is given back. Work on the booking has begun. Called
   * without the lock.
   */
  private void setAside(PendingRequest waiting, Booking booking) {
    RuntimeException failure = null;
    try {
      EnforcedLease ignored = preparations.prepare(booking);
    } catch (RuntimeException | Error e) {
      failure = failed(booking, e);
    }
    boolean awaited;
    lock.lock();
    try {
      awaited = unsettled.remove(waiting) != null;
      if (awaited && failure == null) {
        try {
          granted(waiting, booking);
        } catch (RuntimeException | Error e) {
          failure = failed(booking, e);
        }
        if (waiting.isSettled()) {
          table.ends().workDone(booking); // before its owner can close it
          return;
        }
      }
      table.ends().shut(booking);
    } finally {
      lock.unlock();
    }
    try {
      table.ends().bookOut(booking);
      booking.calls.released();
    } finally {
      if (awaited && failure != null) {
        fail(waiting, failure);
      }
    }
  }

  private static RuntimeException failed(Booking booking, Throwable why) {
    return why instanceof RuntimeException known
        ? known
        : new VgpuException("a virtual GPU could not be prepared: id=" + booking.id, why);
  }

  private void fail(PendingRequest waiting, RuntimeException because) {
    lock.lock();
    try {
      waiting.fail(because);
    } finally {
      lock.unlock();
    }
  }

  /** Lets a request go whose part is being set aside; returns whether that was so. */
  boolean giveUp(PendingRequest waiting) {
    return unsettled.remove(waiting) != null;
  }

  /** Fails some of the requests whose parts are being set aside. Returns their bookings. */
  List<Booking> failAll(Predicate<PendingRequest> which, RuntimeException because) {
    List<PendingRequest> failing = unsettled.keySet().stream().filter(which).toList();
    List<Booking> bookings = failing.stream().map(unsettled::remove).toList();
    failing.forEach(waiting -> waiting.fail(because));
    return bookings;
  }

  /** Books a request on its GPUs. */
  Booking book(String id, List<GpuBook> on, Asked asked, Optional<String> chosen) {
    Booking booking =
        new Booking(
            id,
            on,
            asked.request(),
            asked.by(),
            asked.by().calls(id, on, asked.request()),
            chosen.orElse(null),
            table.choices().isSpatial(chosen));
    booking.part = table.choices().setsPartAside(chosen);
    on.forEach(book -> book.add(booking));
    return booking;
  }
}
