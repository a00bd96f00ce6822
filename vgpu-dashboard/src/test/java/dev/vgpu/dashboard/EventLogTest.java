package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.SharingMode;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventLogTest {
  private final EventLog log = new EventLog();

  private JsonNode taken() throws JsonProcessingException {
    JsonText json = new JsonText().object();
    log.putNew(json);
    return new ObjectMapper().readTree(json.endObject().toString()).path("events");
  }

  private JsonNode told() throws JsonProcessingException {
    JsonText json = new JsonText().object();
    log.putTold(json);
    return new ObjectMapper().readTree(json.endObject().toString()).path("events");
  }

  @Test
  void preemptionsHideNoDeath() throws Exception {
    log.add(EventJson.seen("ProcessGone", 1, "batch-1", "gone"));
    for (int i = 0; i < 5_000; i++) {
      log.add(new GpuEvent.Preempted(Instant.ofEpochMilli(i), "batch-1", "chat-1", 0, 1));
    }
    assertThat(taken().path("left_out").asLong()).isEqualTo(4_901);
    assertThat(told()).hasSize(500);
    assertThat(told().findValuesAsText("kind")).contains("ProcessGone");
    assertThat(told().path(499).path("at").asLong()).isEqualTo(4_999);
  }

  @Test
  void changesOfSharingHideNoDeath() throws Exception {
    for (int i = 0; i < 1_000; i++) {
      log.add(
          new GpuEvent.SharingChanged(
              Instant.ofEpochMilli(i), "", new GpuId("GPU-1"), SharingMode.STRICT, "why"));
      if (i == 100) {
        log.add(EventJson.seen("ProcessGone", 1, "batch-1", "gone"));
      }
    }
    assertThat(taken().path("list").findValuesAsText("kind")).contains("ProcessGone");
    assertThat(told().findValuesAsText("kind")).contains("ProcessGone");
    assertThat(taken().path("list")).isEmpty();
  }

  @Test
  void whatWasBeforeIsNotToldAgain() throws Exception {
    GpuEvent leaked = new GpuEvent.Leaked(Instant.EPOCH, "a");
    log.begin(List.of(leaked));
    log.add(leaked);
    log.add(new GpuEvent.Leaked(Instant.EPOCH, "b"));
    assertThat(taken().path("list").findValuesAsText("tenant")).containsExactly("b");
    assertThat(taken().path("list")).isEmpty();
    assertThat(told().findValuesAsText("tenant")).containsExactly("a", "b");
  }
}
