package dev.vgpu.core.pool;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuSettings;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.turn.GpuSeat;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * One GPU and what is taken of it. Guarded by the {@link LeaseTable}'s lock, but for the finals.
 */
final class GpuSlot {
  private static final int ALL_PERCENT = 100;
  private static final int MOST_HOLDERS_NAMED = 8;

  final PhysicalGpu gpu;
  final GpuSeat seat;
  final ShareScheduler scheduler;
  final long shortestTurnNs;
  final Set<Booking> bookings = new LinkedHashSet<>();
  private final long mostBytes;
  private long takenBytes;
  private long takenBytesOnline;
  private int takenPercent;
  private int takenPercentOffline;
  private int takers;
  private int takersOffline;

  /** Those with programs; the others need no pace. */
  private final Set<Booking> enforced = new LinkedHashSet<>();

  /** What each best-effort tenant gets while all of its level have work; volatile to be read. */
  private volatile double bestEffortPercent = ALL_PERCENT;

  private volatile double bestEffortPercentOffline = ALL_PERCENT;

  /** How the GPU is, and why; changed with the table's lock held, volatile to be read. */
  volatile Condition condition = new Condition(GpuHealth.HEALTHY, "");

  /** Makes one, whose scheduler decides about the seat from now on. */
  GpuSlot(PhysicalGpu gpu, GpuSeat seat, ShareScheduler scheduler, GpuSettings settings) {
    this.gpu = gpu;
    this.seat = seat;
    this.scheduler = scheduler;
    this.shortestTurnNs = settings.shortestTurn().toNanos();
    this.mostBytes =
        gpu.usableMemory().bytes() / ALL_PERCENT * settings.memoryOversubscriptionPercent()
            + gpu.usableMemory().bytes() % ALL_PERCENT;
    seat.take();
    seat.follow(scheduler);
    seat.stepAndLeave();
  }

  /** How a GPU is, and why. */
  record Condition(GpuHealth health, String reason) {}

  void add(Booking booking) {
    bookings.add(booking);
    book(booking.request(), 1);
    divide();
  }

  void remove(Booking booking) {
    bookings.remove(booking);
    book(booking.request(), -1);
    divide();
  }

  /** A virtual GPU was made ready for programs. */
  void enforced(Booking booking) {
    enforced.add(booking);
    divide();
  }

  /** What is left for best effort, and what pace processes keep by themselves. */
  void divide() {
    bestEffortPercent = Math.max(0.0, ALL_PERCENT - takenPercent) / Math.max(1, takers);
    bestEffortPercentOffline =
        Math.max(0.0, ALL_PERCENT - takenPercentOffline) / Math.max(1, takersOffline);
    enforced.removeIf(booking -> booking.released);
    for (Booking booking : enforced) {
      booking.gate.entitle(booking.request(), booking.entitledPermille());
    }
  }

  /** The percent of the GPU's time that is a tenant's while all of its level have work. */
  double entitledPercent(VirtualGpuRequest request) {
    if (request.computePercent().isPresent()) {
      return request.computePercent().getAsInt();
    }
    return request.preemptionClass() == PreemptionClass.OFFLINE
        ? bestEffortPercentOffline
        : bestEffortPercent;
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
    return MemorySize.ofBytes(Math.max(0, mostBytes - takenBytes));
  }

  /** Quotas of online tenants never take more together than the GPU has, whatever others may. */
  private MemorySize freeMemory(PreemptionClass preemptionClass) {
    MemorySize free = freeMemory();
    if (preemptionClass != PreemptionClass.ONLINE) {
      return free;
    }
    long online = Math.max(0, gpu.usableMemory().bytes() - takenBytesOnline);
    return MemorySize.ofBytes(Math.min(free.bytes(), online));
  }

  /** The percent that may still be guaranteed to tenants of a class. */
  int freePercent(PreemptionClass preemptionClass) {
    boolean offline = preemptionClass == PreemptionClass.OFFLINE;
    return ALL_PERCENT - (offline ? takenPercentOffline : takenPercent);
  }

  boolean fits(VirtualGpuRequest request) {
    return fits(request, request.computePercent().orElse(0), request.memory().bytes());
  }

  private boolean fits(VirtualGpuRequest request, int percent, long bytes) {
    return condition.health() != GpuHealth.LOST
        && percent <= freePercent(request.preemptionClass())
        && bytes <= freeMemory(request.preemptionClass()).bytes();
  }

  /** Whether it would fit if nobody held anything. */
  boolean couldFit(VirtualGpuRequest request) {
    return request.memory().compareTo(gpu.usableMemory()) <= 0;
  }

  /**
   * Whether a request takes nothing that another may need, which does not fit now: of all that it
   * takes, as much as the other asks for is left.
   */
  boolean fitsBeside(VirtualGpuRequest request, VirtualGpuRequest other) {
    int percent = request.computePercent().orElse(0);
    boolean sameLevel = isOffline(request) == isOffline(other);
    int others = percent > 0 && sameLevel ? other.computePercent().orElse(0) : 0;
    return fits(request, percent + others, request.memory().bytes() + other.memory().bytes());
  }

  private static boolean isOffline(VirtualGpuRequest request) {
    return request.preemptionClass() == PreemptionClass.OFFLINE;
  }

  /** What does not fit, in words; empty if it fits. */
  Optional<String> lack(VirtualGpuRequest request) {
    if (condition.health() == GpuHealth.LOST) {
      return Optional.of("gpu=" + gpu.id() + " is lost: " + condition.reason());
    }
    int percent = request.computePercent().orElse(0);
    int free = freePercent(request.preemptionClass());
    if (percent > free) {
      return Optional.of(
          "the guaranteed shares of "
              + level(request.preemptionClass())
              + " tenants would add up to "
              + (ALL_PERCENT - free + percent)
              + " percent of gpu="
              + gpu.id()
              + ", at most "
              + ALL_PERCENT
              + " (ask for "
              + Math.max(0, free)
              + " or less, or for best effort)");
    }
    MemorySize freeMemory = freeMemory(request.preemptionClass());
    if (request.memory().compareTo(freeMemory) > 0) {
      return Optional.of(
          "memory="
              + request.memory()
              + " is more than the "
              + freeMemory
              + " that are free on gpu="
              + gpu.id());
    }
    return Optional.empty();
  }

  private static String level(PreemptionClass preemptionClass) {
    return preemptionClass == PreemptionClass.OFFLINE ? "offline" : "online+nearline";
  }

  void take(VirtualGpuRequest request) {
    book(request, 1);
  }

  void giveBack(VirtualGpuRequest request) {
    book(request, -1);
  }

  private void book(VirtualGpuRequest request, int sign) {
    takenBytes += sign * request.memory().bytes();
    if (request.preemptionClass() == PreemptionClass.ONLINE) {
      takenBytesOnline += sign * request.memory().bytes();
    }
    int percent = sign * request.computePercent().orElse(0);
    int takes = request.computePercent().isEmpty() ? sign : 0;
    if (request.preemptionClass() == PreemptionClass.OFFLINE) {
      takenPercentOffline += percent;
      takersOffline += takes;
    } else {
      takenPercent += percent;
      takers += takes;
    }
  }

  /** What is free for a request's class, in words. */
  String free(PreemptionClass preemptionClass) {
    return "gpu="
        + gpu.id()
        + " freePercent("
        + level(preemptionClass)
        + ")="
        + freePercent(preemptionClass)
        + " freeMemory="
        + freeMemory(preemptionClass)
        + " usableMemory="
        + gpu.usableMemory();
  }

  /** What is free for a request's class, and who holds the rest, in words. */
  String occupation(VirtualGpuRequest request) {
    StringBuilder text = new StringBuilder(free(request.preemptionClass())).append(" held by ");
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
