package dev.vgpu.core.book;

import dev.vgpu.BackendChoice;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.Member;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Makes room for a request by moving parts of a GPU that are set aside for idle leases. */
public final class RoomMaking {
  private final LeaseTable table;
  private final Enforcements enforcements;

  /** Creates one for a table. */
  public RoomMaking(LeaseTable table, Enforcements enforcements) {
    this.table = table;
    this.enforcements = enforcements;
  }

  /**
   * Moves what is necessary of a member's own leases, or of all leases if {@code member} is empty,
   * and returns what was moved.
   *
   * @throws GpuCapacityException if the request does not fit, and moving would not help
   */
  public List<String> makeRoom(VirtualGpuRequest request, Optional<Member> member) {
    // Without the table's lock, because this may scan all processes.
    Set<String> idle = new HashSet<>();
    for (Booking booking : member.map(table::bookingsOf).orElseGet(table::bookings)) {
      if (!table.ends().isInUse(booking)) {
        idle.add(booking.id);
      }
    }
    List<String> moved = new ArrayList<>();
    table.change(() -> moved.addAll(move(request, idle, member)));
    return moved;
  }

  private List<String> move(VirtualGpuRequest request, Set<String> idle, Optional<Member> member) {
    boolean fits =
        table.explain(request).stream()
            .anyMatch(choice -> choice.verdict() == BackendChoice.Verdict.CHOSEN);
    if (fits) {
      return List.of();
    }
    for (GpuSlot slot : table.slots()) {
      boolean isAllowed = request.gpus().isEmpty() || request.gpus().contains(slot.gpu.id());
      if (isAllowed && slot.fits(request)) {
        List<String> moved =
            enforcements.makeRoom(slot.gpu, request, id -> idle.contains(id) && isIdle(id));
        if (!moved.isEmpty()) {
          return moved;
        }
      }
    }
    List<String> used =
        table.bookings().stream()
            .map(booking -> booking.id)
            .filter(id -> !idle.contains(id))
            .toList();
    throw new GpuCapacityException(
        "no room can be made by moving idle virtual GPUs: asked "
            + request
            + (used.isEmpty()
                ? ""
                : "; something runs under these"
                    + (member.isEmpty() ? "" : ", or they are other users'")
                    + ", which cannot be moved: "
                    + GpuSlot.named(used.stream(), used.size())),
        Booking.snapshots(GpuSlot.holders(table.slots())));
  }

  /** Checked again with the lock held. */
  private boolean isIdle(String id) {
    return table.booking(id).filter(booking -> !booking.hasProcesses()).isPresent();
  }
}
