package dev.vgpu.core.turn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.schedule.TurnStepper;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.spi.EnforcedLease;
import org.junit.jupiter.api.Test;

/** The gates of one tenant. */
class TenantGateTest {
  @Test
  void aBackendThatIsReadyAfterItsTenantHasLeftGetsNoTurns() {
    try (SeatThread thread = new SeatThread(NanoClock.SYSTEM)) {
      GpuSeat seat = new GpuSeat(NanoClock.SYSTEM, thread);
      ShareScheduler scheduler =
          new ShareScheduler(
              new SchedulerSettings(
                  2_000_000, 2_000_000, 100_000, 0, true, SchedulerSettings.LOCKOUT_NS),
              (victim, by, asked) -> {},
              0);
      seat.take();
      seat.follow(scheduler);
      seat.leave();
      TurnGate calls = mock(TurnGate.class);
      when(calls.shut()).thenReturn(true);
      TenantGate gate =
          new TenantGate(
              "a",
              seat,
              scheduler,
              calls,
              GangNode.request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE));
      gate.end();

      EnforcedLease lease = mock(EnforcedLease.class);
      when(lease.hasWork()).thenReturn(true);
      when(lease.shut()).thenReturn(true);
      gate.enforce(lease);

      verify(lease, never()).open();
      seat.take();
      long wakeNs = scheduler.nextWakeNs();
      seat.leave();
      assertThat(wakeNs).isEqualTo(TurnStepper.NEVER);
    }
  }
}
