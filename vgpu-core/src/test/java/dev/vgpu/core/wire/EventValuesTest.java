package dev.vgpu.core.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.SharingMode;
import java.lang.reflect.Modifier;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class EventValuesTest {
  private static final Instant AT = Instant.ofEpochSecond(1_700_000_000, 123_456_789);
  private static final MemorySize SIZE = MemorySize.ofMebibytes(3);
  private static final GpuId GPU = new GpuId("GPU-1");
  private static final VirtualGpuRequest SMALL =
      VirtualGpuRequest.builder().name("a").memory(SIZE).build();
  private static final VirtualGpuRequest LARGE =
      SMALL.toBuilder().memory(MemorySize.ofMebibytes(7)).build();

  private static final UsageReading USAGE =
      new UsageReading(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, OptionalDouble.of(1.25));

  private static final List<GpuEvent> EVENTS =
      List.of(
          new GpuEvent.Acquired(AT, "a-1", GPU, SMALL),
          new GpuEvent.Refused(AT, "a", LARGE, "why"),
          new GpuEvent.Resized(AT, "a-1", SMALL, LARGE),
          new GpuEvent.Preempted(AT, "a-1", "b-2", 3, 4_000_000_000L),
          new GpuEvent.CancelFailed(AT, "a-1", "why"),
          new GpuEvent.AllocationDenied(AT, "a-1", 5_000_000_000L, "why"),
          new GpuEvent.SuspectReport(AT, "a-1", "why"),
          new GpuEvent.Disturbed(AT, "a-1", "why"),
          new GpuEvent.SharingChanged(AT, "", GPU, SharingMode.STRICT, "why"),
          new GpuEvent.MeteringFailed(AT, "", "why"),
          new GpuEvent.Leaked(AT, "a-1"),
          new GpuEvent.Closed(AT, "a-1", USAGE),
          new GpuEvent.ReclaimAsked(AT, "a-1", SIZE, "why"),
          new GpuEvent.Suspended(AT, "a-1", SIZE, "why"),
          new GpuEvent.Resumed(AT, "a-1", "why"),
          new GpuEvent.EndedByReclaim(AT, "a-1", List.of(4L, 5L), "why"),
          new GpuEvent.EndedByReclaim(AT, "a-1", List.of(), "why"),
          new GpuEvent.HeldBack(AT, "a", "why"),
          new GpuEvent.HealthChanged(AT, "a-1", GPU, GpuHealth.LOST, "why"),
          new GpuEvent.HealthChanged(AT, "", GPU, GpuHealth.DEGRADED, "why"),
          new GpuEvent.HealthChanged(AT, "", GPU, GpuHealth.HEALTHY, "why"),
          new GpuEvent.GpuFault(AT, "", GPU, "why"));

  @Test
  void eventsArriveAsTheyWereSent() {
    for (GpuEvent event : EVENTS) {
      byte[] bytes = EventValues.of(event).encode().array();
      Message received = Message.decode(Arrays.copyOfRange(bytes, Integer.BYTES, bytes.length));
      assertThat(EventValues.event(received)).usingRecursiveComparison().isEqualTo(event);
    }
  }

  @Test
  void eachKindOfEventCanBeSent() {
    assertThat(EVENTS.stream().map(Object::getClass).distinct())
        .containsExactlyInAnyOrderElementsOf(
            Arrays.stream(GpuEvent.class.getPermittedSubclasses())
                .filter(type -> Modifier.isPublic(type.getModifiers()))
                .toList());
  }

  @Test
  void severalEventsGoIntoOneMessage() {
    Message message = new Message("answer");
    EventValues.put(message, EVENTS);
    assertThat(EventValues.events(message)).usingRecursiveComparison().isEqualTo(EVENTS);
  }

  @Test
  void unknownKindIsMalformed() {
    Message message = EventValues.of(EVENTS.get(0)).with("kind", "Nonsense");
    assertThatThrownBy(() -> EventValues.event(message))
        .isInstanceOf(MalformedMessageException.class)
        .hasMessageContaining("no such event: Nonsense");
  }
}
