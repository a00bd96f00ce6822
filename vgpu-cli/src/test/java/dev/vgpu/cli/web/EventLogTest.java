package dev.vgpu.cli.web;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuEvent;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventLogTest {
  private final EventLog log = new EventLog();

  @Test
  void preemptionsHideNoDeath() {
    log.add(EventJson.seen("ProcessGone", 1, "batch-1", "gone"));
    for (int i = 0; i < 5_000; i++) {
      log.add(new GpuEvent.Preempted(Instant.ofEpochMilli(i), "batch-1", "chat-1", 0, 1));
    }
    assertThat(log.takeNew().path("left_out").asLong()).isEqualTo(4_901);
    assertThat(log.told()).hasSize(500);
    assertThat(log.told().findValuesAsText("kind")).contains("ProcessGone");
    assertThat(log.told().path(499).path("at").asLong()).isEqualTo(4_999);
  }

  @Test
  void whatWasBeforeIsNotToldAgain() {
    GpuEvent leaked = new GpuEvent.Leaked(Instant.EPOCH, "a");
    log.begin(List.of(leaked));
    log.add(leaked);
    log.add(new GpuEvent.Leaked(Instant.EPOCH, "b"));
    assertThat(log.takeNew().path("list").findValuesAsText("tenant")).containsExactly("b");
    assertThat(log.takeNew().path("list")).isEmpty();
    assertThat(log.told().findValuesAsText("tenant")).containsExactly("a", "b");
  }
}
