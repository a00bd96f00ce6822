package dev.vgpu.core.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReclaimEventsTest {
  @Test
  void eventsArriveAsTheyWereSent() {
    Instant at = Instant.ofEpochSecond(1_700_000_000, 123_456_789);
    MemorySize size = MemorySize.ofMebibytes(3);
    List<GpuEvent> events =
        List.of(
            new GpuEvent.ReclaimAsked(at, "a-1", size, "why"),
            new GpuEvent.Suspended(at, "a-1", size, "why"),
            new GpuEvent.Resumed(at, "a-1", "why"),
            new GpuEvent.EndedByReclaim(at, "a-1", List.of(4L, 5L), "why"),
            new GpuEvent.EndedByReclaim(at, "a-1", List.of(), "why"),
            new GpuEvent.HeldBack(at, "a", "why"),
            new GpuEvent.HealthChanged(at, "a-1", new GpuId("GPU-1"), GpuHealth.LOST, "why"),
            new GpuEvent.HealthChanged(at, "", new GpuId("GPU-1"), GpuHealth.DEGRADED, "why"),
            new GpuEvent.HealthChanged(at, "", new GpuId("GPU-1"), GpuHealth.HEALTHY, "why"),
            new GpuEvent.GpuFault(at, "", new GpuId("GPU-1"), "why"));
    for (GpuEvent event : events) {
      byte[] bytes = EventValues.of(event).encode().array();
      Message received = Message.decode(Arrays.copyOfRange(bytes, Integer.BYTES, bytes.length));
      assertThat(EventValues.event(received)).isEqualTo(event);
    }
  }
}
