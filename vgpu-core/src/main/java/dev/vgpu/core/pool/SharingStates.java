package dev.vgpu.core.pool;

import dev.vgpu.GpuState;
import dev.vgpu.SharingMode;
import dev.vgpu.core.schedule.SchedulerState;
import dev.vgpu.core.schedule.SchedulerState.TenantState;
import dev.vgpu.core.seat.StateValues;
import java.time.Duration;
import java.util.List;

/** How GPUs are shared, as the schedulers of this process tell. */
final class SharingStates {
  private SharingStates() {}

  /** One state for each GPU. */
  static List<GpuState> of(List<GpuSlot> slots) {
    return slots.stream().map(SharingStates::of).toList();
  }

  private static GpuState of(GpuSlot slot) {
    SchedulerState state;
    slot.seat.take();
    try {
      state = slot.scheduler.state();
    } finally {
      slot.seat.leave();
    }
    return new StateValues.State(
        slot.gpu.id(),
        mode(state.mode()),
        state.reason(),
        state.holder(),
        state.tenants().stream().filter(TenantState::heldBack).map(TenantState::id).toList(),
        Duration.ofNanos(state.turnNs()),
        state.switches());
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
