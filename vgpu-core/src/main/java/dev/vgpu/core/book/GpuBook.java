package dev.vgpu.core.book;

import dev.vgpu.GpuSettings;
import dev.vgpu.core.admission.Admission;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.PhysicalGpu;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * One GPU and what is granted of it. Guarded by the {@link LeaseTable}'s lock, except for final
 * fields.
 */
public final class GpuBook {
  /** How many tenants a refusal names. A refusal may be repeated, and there may be hundreds. */
  private static final int MOST_HOLDERS_NAMED = 8;

  /** The GPU. */
  public final PhysicalGpu gpu;

  /** Guards the GPU's scheduler and gates. */
  public final GpuSeat seat;

  final ShareScheduler scheduler;
  final long shortestTurnNs;
  final Set<Booking> bookings = new LinkedHashSet<>();
  private final Admission admission;

  /** The virtual GPUs with programs; only they limit themselves while no seat answers. */
  private final Set<Booking> enforced = new LinkedHashSet<>();

  /** The GPU's health, and why. Changed with the table's lock held; volatile for readers. */
  public volatile Condition condition = new Condition(GpuHealth.HEALTHY, "");

  /** Creates a book. From now on its scheduler decides for the seat. */
  public GpuBook(PhysicalGpu gpu, GpuSeat seat, ShareScheduler scheduler, GpuSettings settings) {
    this.gpu = gpu;
    this.seat = seat;
    this.scheduler = scheduler;
    this.shortestTurnNs = settings.shortestTurn().toNanos();
    this.admission =
        new Admission(
            gpu.id().toString(), gpu.usableMemory(), settings.memoryOversubscriptionPercent());
    seat.take();
    seat.follow(scheduler);
    seat.stepAndLeave();
  }

  /** A GPU's health, and why. */
  public record Condition(GpuHealth health, String reason) {}

  void add(Booking booking) {
    bookings.add(booking);
    take(booking.request());
    divide();
  }

  void remove(Booking booking) {
    bookings.remove(booking);
    giveBack(booking.request());
    divide();
  }

  /** Records that a virtual GPU was prepared for programs. */
  void enforced(Booking booking) {
    enforced.add(booking);
    divide();
  }

  /**
   * Recomputes what is left for best effort, and the entitlements that processes keep by
   * themselves.
   */
  void divide() {
    admission.divide();
    enforced.removeIf(booking -> booking.released);
    for (Booking booking : enforced) {
      if (!booking.spatial) { // a part of a GPU is its own, whatever its neighbours have
        booking.gate.entitle(booking.request(), booking.entitledPermille());
      }
    }
  }

  /** A tenant's part of the GPU's time, in percent, while all tenants of its level have work. */
  double entitledPercent(VirtualGpuRequest request) {
    return admission.entitledPercent(request);
  }

  /** The tenants that share it in the other way, in turns or in space; empty if there are none. */
  String sharedOtherwise(boolean inSpace) {
    return bookings.stream()
        .filter(booking -> booking.spatial != inSpace)
        .limit(MOST_HOLDERS_NAMED)
        .map(booking -> booking.id)
        .collect(Collectors.joining(" "));
  }

  /** Whether a virtual GPU on it is being closed, or is about to be: its capacity will be free. */
  boolean isBeingFreed() {
    return bookings.stream()
        .anyMatch(booking -> booking.released || booking.leaving || booking.ending);
  }

  MemorySize freeMemory() {
    return admission.freeMemory();
  }

  int freePercent(PreemptionClass preemptionClass) {
    return admission.freePercent(preemptionClass);
  }

  /** Whether the request fits now. */
  public boolean fits(VirtualGpuRequest request) {
    return !isLost() && admission.fits(request);
  }

  private boolean isLost() {
    return condition.health() == GpuHealth.LOST;
  }

  /** Whether the request would fit on the empty GPU. */
  boolean couldFit(VirtualGpuRequest request) {
    return admission.couldFit(request);
  }

  /** Whether the request takes nothing that another one, which does not fit now, may need. */
  boolean fitsBeside(VirtualGpuRequest request, VirtualGpuRequest other) {
    return !isLost() && admission.fitsBeside(request, other);
  }

  /** What the request lacks to fit, in words; empty if it fits. */
  Optional<String> lack(VirtualGpuRequest request) {
    return isLost()
        ? Optional.of("gpu=" + gpu.id() + " is lost: " + condition.reason())
        : admission.lack(request);
  }

  void take(VirtualGpuRequest request) {
    admission.take(request);
  }

  void giveBack(VirtualGpuRequest request) {
    admission.giveBack(request);
  }

  /** The first tenants of each of these GPUs: those that a refusal names. */
  static List<Booking> holders(List<GpuBook> books) {
    return books.stream()
        .flatMap(book -> book.bookings.stream().limit(MOST_HOLDERS_NAMED))
        .distinct()
        .toList();
  }

  /** Names the first few of these, and says how many more there are. */
  static String named(Stream<String> all, int size) {
    String first = all.limit(MOST_HOLDERS_NAMED).collect(Collectors.joining(" "));
    int more = size - MOST_HOLDERS_NAMED;
    return more > 0 ? first + " and " + more + " more" : first;
  }

  /** What is free for a request's class, and which tenants hold the rest, in words. */
  String occupation(VirtualGpuRequest request) {
    String holders =
        named(
            bookings.stream().map(booking -> "[id=" + booking.id + " " + booking.request() + "]"),
            bookings.size());
    return admission.free(request.preemptionClass())
        + " held by "
        + (bookings.isEmpty() ? "nobody" : holders);
  }
}
