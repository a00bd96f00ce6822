package dev.vgpu.cli.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventJsonTest {
  private static final Instant AT = Instant.ofEpochMilli(1_800_000_000_000L);

  @Test
  void textOfOthersStaysOneStringOfTheMessage() {
    String hostile = "<script>alert(1)</script>\n\nevent: tick\ndata: {}";
    ObjectNode json = EventJson.of(new GpuEvent.GpuFault(AT, "", new GpuId("GPU-1"), hostile));
    assertThat(json.path("reason").asText()).isEqualTo(hostile);
    assertThat(json.toString()).doesNotContain("\n");
    assertThat(json.path("gpu").asText()).isEqualTo("GPU-1");
  }

  @Test
  void whatIsToldOfAnEventIsThere() {
    ObjectNode json = EventJson.of(new GpuEvent.Preempted(AT, "batch-1", "chat-2", 1, 12));
    assertThat(json.path("kind").asText()).isEqualTo("Preempted");
    assertThat(json.path("tenant").asText()).isEqualTo("batch-1");
    assertThat(json.path("by").asText()).isEqualTo("chat-2");
    assertThat(json.path("times").asInt()).isEqualTo(12);
    ObjectNode ended =
        EventJson.of(new GpuEvent.EndedByReclaim(AT, "batch-1", List.of(7L, 8L), "short of it"));
    assertThat(ended.path("processes").asText()).isEqualTo("[7, 8]");
    MemorySize wanted = MemorySize.ofGibibytes(2);
    assertThat(
            EventJson.of(new GpuEvent.ReclaimAsked(AT, "a", wanted, "low"))
                .path("wanted_bytes")
                .asLong())
        .isEqualTo(2L << 30);
  }

  @Test
  void longTextIsCut() {
    ObjectNode json = EventJson.of(new GpuEvent.Resumed(AT, "a", "x".repeat(100_000)));
    assertThat(json.path("reason").asText()).hasSizeLessThan(2_000);
  }
}
