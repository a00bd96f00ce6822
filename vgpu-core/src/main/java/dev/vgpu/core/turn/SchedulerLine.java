package dev.vgpu.core.turn;

import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.request.VirtualGpuRequest;

/** Queues at one GPU's scheduler. Guarded by its seat's lock. */
final class SchedulerLine implements TurnLine {
  private final GpuSeat seat;
  private final ShareScheduler scheduler;
  private final Tenant tenant;

  SchedulerLine(GpuSeat seat, ShareScheduler scheduler, Tenant tenant) {
    this.seat = seat;
    this.scheduler = scheduler;
    this.tenant = tenant;
  }

  private long nowNs() {
    return seat.clock().nanoTime();
  }

  @Override
  public void wanted() {
    scheduler.wanted(tenant, nowNs());
  }

  @Override
  public void drained() {
    scheduler.drained(tenant, nowNs());
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    scheduler.resize(tenant, request, nowNs());
  }

  @Override
  public void adopt() {
    scheduler.adopt(tenant, nowNs());
  }

  @Override
  public void paid(long usedNs) {
    scheduler.paid(tenant, usedNs);
  }

  @Override
  public void remove() {
    scheduler.remove(tenant, nowNs());
  }
}
