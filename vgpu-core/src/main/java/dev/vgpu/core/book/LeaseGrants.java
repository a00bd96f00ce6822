package dev.vgpu.core.book;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.Member;
import dev.vgpu.files.OpenFiles;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.EnforcementBackend;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Adds leases to the book. Guarded by the {@link LeaseTable}'s lock. */
public final class LeaseGrants {
  /** This many leases fit into one answer to a client that lists them. */
  public static final int MOST_LEASES = 1_000;

  /** No member of the seat's group may have more than this part of what all clients may have. */
  public static final int PARTS_FOR_MEMBERS = 4;

  private final int mostForClients = OpenFiles.part(MOST_LEASES); // each may have a file open
  private final NodeContext node;
  private final LeaseTable table;
  private final Enforcements enforcements;
  private final @Nullable LeaseDirectory disk;

  LeaseGrants(
      NodeContext node,
      LeaseTable table,
      Enforcements enforcements,
      @Nullable LeaseDirectory disk) {
    this.node = node;
    this.table = table;
    this.enforcements = enforcements;
    this.disk = disk;
  }

  /** Grants a request on GPUs where it fits. */
  Booking grant(Asked asked, List<GpuSlot> on) {
    VirtualGpuRequest request = asked.request();
    checkRoom(asked);
    String id = node.newLeaseId(request.name(), disk);
    List<GpuId> gpus = on.stream().map(slot -> slot.gpu.id()).toList();
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
    setAside(booking);
    table.meter().opened(booking);
    node.listeners().publish(at -> new GpuEvent.Acquired(at, id, gpus.get(0), request));
    return booking;
  }

  /**
   * Limits what other processes acquire and claim, because this process keeps account for them.
   * What this JVM acquires itself is its own concern.
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

  /** If the backend sets a part of the GPU aside, it does so now, or nothing is granted. */
  private void setAside(Booking booking) {
    boolean now =
        Optional.ofNullable(booking.chosen)
            .flatMap(enforcements::named)
            .filter(EnforcementBackend::preparesWhenGranted)
            .isPresent();
    boolean done = false;
    try {
      EnforcedLease ignored = now ? table.enforce(booking) : null;
      done = true;
    } finally {
      if (!done) {
        booking.released = true;
        booking.gate.end();
        if (disk != null) {
          disk.remove(booking.id);
        }
        booking.slots.forEach(slot -> slot.remove(booking));
        booking.calls.released();
      }
    }
  }

  /** Books a request on its GPUs. */
  Booking book(String id, List<GpuSlot> on, Asked asked, Optional<String> chosen) {
    Booking booking =
        new Booking(
            id,
            on,
            asked.request(),
            asked.by(),
            asked.by().calls(id, on, asked.request()),
            chosen.orElse(null),
            table.choices().isSpatial(chosen));
    on.forEach(slot -> slot.add(booking));
    return booking;
  }
}
