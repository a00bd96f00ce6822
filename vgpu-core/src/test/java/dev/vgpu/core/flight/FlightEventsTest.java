package dev.vgpu.core.flight;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.SharingMode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.DataAmount;
import jdk.jfr.EventType;
import jdk.jfr.Recording;
import jdk.jfr.Timespan;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FlightEventsTest {
  private static final Instant AT = Instant.ofEpochSecond(1_800_000_000);
  private static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder()
          .name("model")
          .memory(MemorySize.ofMebibytes(3))
          .policy(SharePolicy.BURST_SHARE)
          .computePercent(30)
          .preemptionClass(PreemptionClass.ONLINE)
          .build();
  static final UsageReading USAGE =
      new UsageReading(1_000_000_007, 2, 3, 4, 5, 6, 7, 8, 9, 10).with(OptionalDouble.of(1.25));

  static final List<GpuEvent> ALL =
      List.of(
          new GpuEvent.Acquired(AT, "model-1", new GpuId("GPU-1"), REQUEST),
          new GpuEvent.Refused(AT, "model", REQUEST, "no room"),
          new GpuEvent.Resized(
              AT, "model-1", REQUEST, REQUEST.toBuilder().computePercent(50).build()),
          new GpuEvent.Preempted(AT, "batch-2", "model-1", 3, 4),
          new GpuEvent.CancelFailed(AT, "batch-2", "it threw"),
          new GpuEvent.AllocationDenied(AT, "batch-2", 5, "quota"),
          new GpuEvent.SuspectReport(AT, "batch-2", "clock went back"),
          new GpuEvent.Disturbed(AT, "batch-2", "the server ended"),
          new GpuEvent.SharingChanged(AT, "", new GpuId("GPU-1"), SharingMode.OVERLAP, "all best"),
          new GpuEvent.MeteringFailed(AT, "", "disk is full"),
          new GpuEvent.ReclaimAsked(AT, "batch-2", MemorySize.ofBytes(77), "low"),
          new GpuEvent.Suspended(AT, "batch-2", MemorySize.ofBytes(78), "low"),
          new GpuEvent.Resumed(AT, "batch-2", "high"),
          new GpuEvent.EndedByReclaim(AT, "batch-2", List.of(11L, 12L), "low"),
          new GpuEvent.HeldBack(AT, "batch", "until high"),
          new GpuEvent.HealthChanged(AT, "batch-2", new GpuId("GPU-1"), GpuHealth.LOST, "gone"),
          new GpuEvent.GpuFault(AT, "", new GpuId("GPU-1"), "XID 31"),
          new GpuEvent.Leaked(AT, "model-1"),
          new GpuEvent.Closed(AT, "model-1", USAGE));

  @TempDir private Path directory;

  /** The events in a recording, by name. */
  private Map<String, RecordedEvent> recorded() throws IOException {
    Path file = directory.resolve("recording.jfr");
    try (Recording recording = new Recording()) {
      recording.start();
      ALL.forEach(FlightEvents::record);
      FlightEvents.record("model-1", USAGE);
      recording.stop();
      recording.dump(file);
    }
    assertThat(Files.size(file)).isPositive();
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().startsWith("dev.vgpu."))
        .collect(Collectors.toMap(event -> event.getEventType().getName(), Function.identity()));
  }

  @Test
  void everyEventIsInARecordingWithNamedFieldsAndUnits() throws IOException {
    Map<String, RecordedEvent> events = recorded();
    for (GpuEvent event : ALL) {
      assertThat(events).containsKey("dev.vgpu." + event.getClass().getSimpleName());
    }
    assertThat(events).hasSize(ALL.size() + 1);
    for (RecordedEvent event : events.values()) {
      EventType type = event.getEventType();
      assertThat(type.getLabel()).isNotBlank();
      assertThat(type.getCategoryNames()).startsWith("vgpu").hasSize(2);
      assertThat(type.getFields())
          .allSatisfy(field -> assertThat(field.getLabel()).as(field.getName()).isNotBlank());
    }
    RecordedEvent preempted = events.get("dev.vgpu.Preempted");
    assertThat(preempted.getString("virtualGpu")).isEqualTo("batch-2");
    assertThat(preempted.getString("by")).isEqualTo("model-1");
    assertThat(preempted.getLong("times")).isEqualTo(4);
    RecordedEvent closed = events.get("dev.vgpu.Closed");
    assertThat(closed.getDuration("gpuTime")).isEqualTo(Duration.ofNanos(1_000_000_007));
    assertThat(closed.getEventType().getField("gpuTime").getAnnotation(Timespan.class)).isNotNull();
    RecordedEvent acquired = events.get("dev.vgpu.Acquired");
    assertThat(acquired.getLong("quota")).isEqualTo(3 << 20);
    assertThat(acquired.getEventType().getField("quota").getAnnotation(DataAmount.class))
        .isNotNull();
    assertThat(acquired.getString("preemptionClass")).isEqualTo("ONLINE");
    assertThat(acquired.getFloat("share")).isEqualTo(0.3f);
    assertThat(events.get("dev.vgpu.Resized").getFloat("afterShare")).isEqualTo(0.5f);
    assertThat(events.get("dev.vgpu.EndedByReclaim").getString("processes")).isEqualTo("[11, 12]");
    assertThat(events.get("dev.vgpu.SharingChanged").getString("mode")).isEqualTo("OVERLAP");
    assertThat(events.get("dev.vgpu.Usage").getDouble("slowdown")).isEqualTo(1.25);
  }

  /** Fails if a new kind of event is missing in this test. */
  @Test
  void allKindsAreTried() {
    assertThat(Arrays.stream(GpuEvent.class.getPermittedSubclasses()).map(Class::getSimpleName))
        .containsExactlyInAnyOrderElementsOf(
            Stream.concat(
                    Stream.of("UnlistedGpuEvent"),
                    ALL.stream().map(event -> event.getClass().getSimpleName()))
                .toList());
  }

  @Test
  void reasonsAreRecorded() throws IOException {
    Map<String, RecordedEvent> events = recorded();
    for (GpuEvent event : ALL) {
      String reason = reason(event);
      if (!reason.isEmpty()) {
        RecordedEvent shown = events.get("dev.vgpu." + event.getClass().getSimpleName());
        assertThat(shown.getString("reason")).isEqualTo(reason);
      }
    }
  }

  private static String reason(GpuEvent event) {
    try {
      return (String) event.getClass().getMethod("reason").invoke(event);
    } catch (ReflectiveOperationException e) {
      return ""; // the event has no reason
    }
  }

  @Test
  void withoutARecordingNothingHappens() {
    ALL.forEach(FlightEvents::record);
    FlightEvents.record("model-1", USAGE);
    assertThat(new LeaseFlights.Leaked().shouldCommit()).isFalse();
  }
}
