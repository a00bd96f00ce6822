package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuSettings;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import org.junit.jupiter.api.Test;

/** A gate reports that it is idle only after it was told that others wait. */
class IdleUntoldTest {
  /** Its last work ends just before it is told that others wait, so it reports nothing. */
  private static final class Gate extends BusyGate {
    boolean work = true;
    boolean endsUnseen;

    @Override
    public boolean hasWork() {
      return work;
    }

    @Override
    public void contended(boolean contended) {
      work &= !(contended && endsUnseen);
    }
  }

  private static Tenant tenant(String name, Gate gate, PreemptionClass preemptionClass) {
    return new Tenant(
        name,
        gate,
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .preemptionClass(preemptionClass)
            .build());
  }

  @Test
  void turnThatBecameIdleUnseenIsPassedOn() {
    ShareScheduler scheduler =
        new ShareScheduler(
            SchedulerSettings.from(GpuSettings.defaults()), (victim, by, asked) -> {}, 0);
    Gate online = new Gate();
    Gate offline = new Gate();
    scheduler.wanted(tenant("online", online, PreemptionClass.ONLINE), 0);
    int ignored = scheduler.doWork(0);
    assertThat(online.open).isTrue();

    online.endsUnseen = true;
    scheduler.wanted(tenant("offline", offline, PreemptionClass.OFFLINE), 1_000);
    ignored = scheduler.doWork(1_000);
    for (int i = 0; i < 10 && !offline.open; i++) {
      assertThat(scheduler.nextWakeNs()).isNotEqualTo(TurnStepper.NEVER);
      ignored = scheduler.doWork(scheduler.nextWakeNs());
    }
    assertThat(offline.open).isTrue();
  }
}
