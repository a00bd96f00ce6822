package dev.vgpu.core.events;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.SeatThread;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import dev.vgpu.watch.GpuEvent;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a scheduler's observer publishes. */
class PreemptionsTest {
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void end() {
    threads.shutdownNow();
  }

  @Test
  void aStallIsAnEventOfTheTenantThatWaited() {
    Listeners listeners = new Listeners(NanoClock.SYSTEM, threads);
    Tenant tenant =
        new Tenant(
            "a-1",
            new VirtualGate("a-1", 0, -1),
            VirtualNode.request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE));
    try (SeatThread thread = new SeatThread(NanoClock.SYSTEM)) {
      GpuSeat seat = new GpuSeat(NanoClock.SYSTEM, thread);
      Preemptions preemptions = new Preemptions(listeners, NanoClock.SYSTEM);
      seat.take();
      preemptions
          .observer(new GpuId("GPU-1"), seat)
          .stoodStill(tenant, "its work was not reported");
      assertThat(listeners.recent()).isEmpty(); // nothing is published with the seat held
      seat.leave();
    }
    assertThat(listeners.recent()).hasSize(1);
    GpuEvent.Disturbed event = (GpuEvent.Disturbed) listeners.recent().get(0);
    assertThat(event.virtualGpu()).isEqualTo("a-1");
    assertThat(event.reason()).contains("stalled", "GPU-1", "its work was not reported");
  }
}
