package dev.vgpu.core.book;

import dev.vgpu.GpuSettings;
import dev.vgpu.core.schedule.SchedulerState;
import dev.vgpu.core.schedule.SchedulerState.TenantState;
import dev.vgpu.core.wire.StateValues;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.SharingMode;
import java.time.Duration;
import java.util.List;

/** How GPUs are shared, from the schedulers and the book of this process. */
final class SharingStates {
  private static final int ALL_PERCENT = 100;

  private SharingStates() {}

  /** One state for each GPU. */
  static List<GpuState> of(List<GpuBook> books, List<Booking> bookings, PoolSettings settings) {
    return books.stream()
        .map(
            book ->
                of(
                    book,
                    bookings.stream().filter(booking -> booking.books.contains(book)).toList(),
                    settings.of(book.gpu.id())))
        .toList();
  }

  private static GpuState of(GpuBook book, List<Booking> bookings, GpuSettings settings) {
    SchedulerState state;
    book.seat.take();
    try {
      state = book.scheduler.state();
    } finally {
      book.seat.leave();
    }
    long usable = book.gpu.usableMemory().bytes();
    long held = bookings.stream().mapToLong(SharingStates::heldBytes).sum();
    return new StateValues.State(
        book.gpu.id(),
        mode(state.mode()),
        state.reason(),
        state.holder(),
        state.tenants().stream().filter(TenantState::heldBack).map(TenantState::id).toList(),
        Duration.ofNanos(state.turnNs()),
        state.switches(),
        MemorySize.ofBytes(Math.max(0, usable - held)),
        percent(usable, settings.memoryLowWatermarkPercent()),
        percent(usable, settings.memoryHighWatermarkPercent()),
        bookings.stream().filter(booking -> booking.suspended).map(booking -> booking.id).toList(),
        book.condition.health(),
        book.condition.reason());
  }

  /** The memory that a virtual GPU holds on each of its GPUs. */
  private static long heldBytes(Booking booking) {
    if (booking.suspended) {
      return 0; // it is in host memory
    }
    GpuUsage usage = booking.usage();
    return Math.max(usage.memoryUsed().bytes(), usage.memoryReserved().bytes())
        / booking.books.size();
  }

  private static MemorySize percent(long of, int percent) {
    return MemorySize.ofBytes(of / ALL_PERCENT * percent);
  }

  private static SharingMode mode(SchedulerState.Mode mode) {
    return switch (mode) {
      case IDLE -> SharingMode.IDLE;
      case ALONE -> SharingMode.ALONE;
      case OVERLAP -> SharingMode.OVERLAP;
      case STRICT -> SharingMode.STRICT;
    };
  }
}
