package dev.vgpu.core.book;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuSettings;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.admission.Admission;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.turn.GpuSeat;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * One GPU and what is taken of it. Guarded by the {@link LeaseTable}'s lock, but for the finals.
 */
public final class GpuSlot {
  private static final int MOST_HOLDERS_NAMED = 8;

  /** The GPU. */
  public final PhysicalGpu gpu;

  /** Guards the GPU's scheduler and gates. */
  public final GpuSeat seat;

  final ShareScheduler scheduler;
  final long shortestTurnNs;
  final Set<Booking> bookings = new LinkedHashSet<>();
  private final Admission admission;

  /** Those with programs; the others need no pace. */
  private final Set<Booking> enforced = new LinkedHashSet<>();

  /** How the GPU is, and why; changed with the table's lock held, volatile to be read. */
  public volatile Condition condition = new Condition(GpuHealth.HEALTHY, "");

  /** Makes one, whose scheduler decides about the seat from now on. */
  public GpuSlot(PhysicalGpu gpu, GpuSeat seat, ShareScheduler scheduler, GpuSettings settings) {
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

  /** How a GPU is, and why. */
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

  /** A virtual GPU was made ready for programs. */
  void enforced(Booking booking) {
    enforced.add(booking);
    divide();
  }

  /** What is left for best effort, and what pace processes keep by themselves. */
  void divide() {
    admission.divide();
    enforced.removeIf(booking -> booking.released);
    for (Booking booking : enforced) {
      booking.gate.entitle(booking.request(), booking.entitledPermille());
    }
  }

  /** The percent of the GPU's time that is a tenant's while all of its level have work. */
  double entitledPercent(VirtualGpuRequest request) {
    return admission.entitledPercent(request);
  }

  /** Those who share it in the other way, in turns or in space; empty if nobody does. */
  String sharedOtherwise(boolean inSpace) {
    return bookings.stream()
        .filter(booking -> booking.spatial != inSpace)
        .limit(MOST_HOLDERS_NAMED)
        .map(booking -> booking.id)
        .collect(Collectors.joining(" "));
  }

  MemorySize freeMemory() {
    return admission.freeMemory();
  }

  int freePercent(PreemptionClass preemptionClass) {
    return admission.freePercent(preemptionClass);
  }

  /** Whether it fits now. */
  public boolean fits(VirtualGpuRequest request) {
    return !isLost() && admission.fits(request);
  }

  private boolean isLost() {
    return condition.health() == GpuHealth.LOST;
  }

  /** Whether it would fit if nobody held anything. */
  boolean couldFit(VirtualGpuRequest request) {
    return admission.couldFit(request);
  }

  /** Whether it takes nothing that another may need, which does not fit now. */
  boolean fitsBeside(VirtualGpuRequest request, VirtualGpuRequest other) {
    return !isLost() && admission.fitsBeside(request, other);
  }

  /** What does not fit, in words; empty if it fits. */
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

  /** What is free for a request's class, and who holds the rest, in words. */
  String occupation(VirtualGpuRequest request) {
    StringBuilder text =
        new StringBuilder(admission.free(request.preemptionClass())).append(" held by ");
    if (bookings.isEmpty()) {
      text.append("nobody");
    }
    text.append(
        bookings.stream()
            .limit(MOST_HOLDERS_NAMED)
            .map(booking -> "[id=" + booking.id + " " + booking.request() + "]")
            .collect(Collectors.joining(" ")));
    if (bookings.size() > MOST_HOLDERS_NAMED) {
      text.append(" and ").append(bookings.size() - MOST_HOLDERS_NAMED).append(" more");
    }
    return text.toString();
  }
}
