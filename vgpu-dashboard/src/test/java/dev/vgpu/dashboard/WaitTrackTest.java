package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.Test;

class WaitTrackTest {
  private static final long WALL_MS = 1_800_000_000_000L;

  private final WaitTrack track = new WaitTrack();

  private void look(int second, boolean waits, boolean progressed) {
    track.look(second * 1_000L, WALL_MS + second * 1_000L, waits, progressed);
  }

  private JsonNode json() {
    JsonText json = new JsonText().object();
    track.put(json);
    try {
      return new ObjectMapper().readTree(json.endObject().toString());
    } catch (JsonProcessingException e) {
      throw new AssertionError(e);
    }
  }

  private String ended() {
    return json().path("waits").path("ended").toString();
  }

  @Test
  void waitGoesOnWhileNothingOfItRuns() {
    look(0, false, true);
    look(1, true, true);
    look(2, true, false);
    look(4, true, false);
    assertThat(json().path("since").asLong()).isEqualTo(WALL_MS + 1_000);
    assertThat(json().path("waited_ms").asLong()).isEqualTo(3_000);
    assertThat(ended()).isEqualTo("[0,0,0,0,0,0,0]");
    look(5, false, true);
    assertThat(json().has("since")).isFalse();
    assertThat(ended()).isEqualTo("[0,0,1,0,0,0,0]");
  }

  @Test
  void turnsBetweenWaitsMakeThemShort() {
    for (int second = 0; second < 10; second++) {
      look(second, true, true);
    }
    look(10, false, true);
    assertThat(ended()).isEqualTo("[10,0,0,0,0,0,0]");
    assertThat(json().path("waits").path("looks").asLong()).isEqualTo(11);
    assertThat(json().path("waits").path("waiting_looks").asLong()).isEqualTo(10);
  }

  @Test
  void longWaitsAreInTheLastBar() {
    for (int second = 0; second <= 60; second++) {
      look(second, true, false);
    }
    look(61, true, true);
    assertThat(ended()).isEqualTo("[0,0,0,0,0,0,1]");
    assertThat(json().path("waited_ms").asLong()).isZero();
  }
}
