package dev.vgpu.core.book;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.core.disk.Member;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Makes room for a request by moving parts of a GPU that are set aside for idle leases. While they
 * are moved, the table's lock is not held, and whoever wants to use one of them waits.
 */
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
    Attempt attempt = new Attempt();
    List<String> moved;
    try {
      table.change(() -> begin(attempt, request, idle));
      if (attempt.fits) {
        return List.of();
      }
      moved = attempt.movable.isEmpty() ? List.of() : move(attempt, request);
    } finally {
      table.ends().workDone(attempt.movable.values());
    }
    if (moved.isEmpty()) {
      throw refusal(request, idle, member);
    }
    return moved;
  }

  /** What may be moved where. Until its end, nobody else uses the movable parts. */
  private static final class Attempt {
    private boolean fits;
    private final List<PhysicalGpu> gpus = new ArrayList<>();
    private final Map<String, Booking> movable = new LinkedHashMap<>();
  }

  private void begin(Attempt attempt, VirtualGpuRequest request, Set<String> idle) {
    table.work().awaitParts();
    attempt.fits =
        table.explain(request).stream()
            .anyMatch(choice -> choice.verdict() == BackendChoice.Verdict.CHOSEN);
    if (attempt.fits) {
      return;
    }
    for (GpuBook book : table.books()) {
      boolean isAllowed = request.gpus().isEmpty() || request.gpus().contains(book.gpu.id());
      if (isAllowed && book.fits(request)) {
        attempt.gpus.add(book.gpu);
      }
    }
    for (Booking booking : table.bookings()) {
      // Something may run under it since the look.
      if (booking.part
          && idle.contains(booking.id)
          && !booking.released
          && !booking.hasProcesses()) {
        attempt.movable.put(booking.id, booking);
        table.work().begin(booking);
      }
    }
  }

  private List<String> move(Attempt attempt, VirtualGpuRequest request) {
    for (PhysicalGpu gpu : attempt.gpus) {
      List<String> moved = enforcements.makeRoom(gpu, request, attempt.movable::containsKey);
      if (!moved.isEmpty()) {
        return moved;
      }
    }
    return List.of();
  }

  private GpuCapacityException refusal(
      VirtualGpuRequest request, Set<String> idle, Optional<Member> member) {
    List<String> used =
        table.bookings().stream()
            .map(booking -> booking.id)
            .filter(id -> !idle.contains(id))
            .toList();
    return new GpuCapacityException(
        "no room can be made by moving idle virtual GPUs: asked "
            + request
            + (used.isEmpty()
                ? ""
                : "; something runs under these"
                    + (member.isEmpty() ? "" : ", or they are other users'")
                    + ", which cannot be moved: "
                    + GpuBook.named(used.stream(), used.size())),
        Booking.snapshots(GpuBook.holders(table.books())));
  }
}
