package dev.vgpu.core.pool;

import dev.vgpu.GpuState;
import dev.vgpu.SharingMode;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.seat.StateValues;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** How GPUs are shared, as the schedulers of this process tell. */
final class SharingStates {
  private SharingStates() {}

  /** One state for each GPU. */
  static List<GpuState> of(List<GpuSlot> slots, List<Booking> bookings, PoolSettings settings) {
    List<GpuState> states = new ArrayList<>();
    for (GpuSlot slot : slots) {
      List<Booking> here =
          bookings.stream().filter(booking -> booking.slots.contains(slot)).toList();
      states.add(of(slot, here, settings.of(slot.gpu.id()).shortestTurn()));
    }
    return List.copyOf(states);
  }

  private static GpuState of(GpuSlot slot, List<Booking> bookings, Duration turnLength) {
    slot.seat.take();
    try {
      Tenant holder = slot.scheduler.holder();
      long busy = bookings.stream().filter(booking -> booking.gate.hasWork()).count();
      SharingMode mode =
          holder == null ? SharingMode.IDLE : busy > 1 ? SharingMode.STRICT : SharingMode.ALONE;
      String reason =
          switch (mode) {
            case IDLE -> "nobody has work, or those who have are at their cap";
            case ALONE -> "one tenant has work";
            default -> busy + " tenants have work and take turns";
          };
      return new StateValues.State(
          slot.gpu.id(),
          mode,
          reason,
          Optional.ofNullable(holder).map(Tenant::id),
          List.of(),
          turnLength,
          0);
    } finally {
      slot.seat.leave();
    }
  }
}
