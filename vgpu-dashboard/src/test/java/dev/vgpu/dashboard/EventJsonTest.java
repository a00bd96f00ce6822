package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuEvent;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventJsonTest {
  private static final Instant AT = Instant.ofEpochMilli(1_800_000_000_000L);

  private static JsonNode json(GpuEvent event) throws JsonProcessingException {
    return new ObjectMapper().readTree(EventJson.of(event).text());
  }

  @Test
  void textOfOthersStaysOneStringOfTheMessage() throws Exception {
    String hostile = "<script>alert(1)</script>\n\nevent: tick\ndata: {}";
    GpuEvent fault = new GpuEvent.GpuFault(AT, "", new GpuId("GPU-1"), hostile);
    assertThat(EventJson.of(fault).text()).doesNotContain("\n");
    JsonNode json = json(fault);
    assertThat(json.path("reason").asText()).isEqualTo(hostile);
    assertThat(json.path("gpu").asText()).isEqualTo("GPU-1");
  }

  @Test
  void whatIsToldOfAnEventIsThere() throws Exception {
    JsonNode json = json(new GpuEvent.Preempted(AT, "batch-1", "chat-2", 1, 12));
    assertThat(json.path("kind").asText()).isEqualTo("Preempted");
    assertThat(json.path("tenant").asText()).isEqualTo("batch-1");
    assertThat(json.path("by").asText()).isEqualTo("chat-2");
    assertThat(json.path("times").asInt()).isEqualTo(12);
    JsonNode ended =
        json(new GpuEvent.EndedByReclaim(AT, "batch-1", List.of(7L, 8L), "short of it"));
    assertThat(ended.path("processes").asText()).isEqualTo("[7, 8]");
    MemorySize wanted = MemorySize.ofGibibytes(2);
    assertThat(
            json(new GpuEvent.ReclaimAsked(AT, "a", wanted, "low")).path("wanted_bytes").asLong())
        .isEqualTo(2L << 30);
  }

  @Test
  void longTextIsCut() throws Exception {
    JsonNode json = json(new GpuEvent.Resumed(AT, "a", "x".repeat(100_000)));
    assertThat(json.path("reason").asText()).hasSizeLessThan(2_000);
  }
}
