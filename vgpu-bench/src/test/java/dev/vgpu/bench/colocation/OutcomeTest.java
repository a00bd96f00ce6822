package dev.vgpu.bench.colocation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

final class OutcomeTest {
  @Test
  void percentilesAreLatenciesThatWereSeen() {
    Outcome outcome = new Outcome();
    List<Double> latenciesMs = new ArrayList<>();
    for (int i = 1_000; i >= 1; i--) {
      latenciesMs.add((double) i);
    }
    outcome.online(latenciesMs, 0, 1);
    assertThat(outcome.percentileMs(50)).isEqualTo(500);
    assertThat(outcome.percentileMs(99)).isEqualTo(990);
    assertThat(outcome.percentileMs(99.9)).isEqualTo(999);
    assertThat(outcome.beyond(99)).isEqualTo(10);
    assertThat(outcome.beyond(99.9)).isEqualTo(1);
  }

  @Test
  void offlineWorkIsComparedWithWhatOnlineWorkLeft() {
    Outcome outcome = new Outcome();
    outcome.online(List.of(1.0, 2.0), 0, 2_000_000);
    outcome.window(10_000_000, 6_000_000, 5);
    assertThat(outcome.onlineBusy()).isCloseTo(0.2, Offset.offset(1e-9));
    assertThat(outcome.offlineOfIdeal()).isCloseTo(0.75, Offset.offset(1e-9));
    assertThat(outcome.lostMs()).isCloseTo(1, Offset.offset(1e-9));
  }

  @Test
  void addedTimeIsThatOfTheSameRequest() {
    Outcome alone = new Outcome();
    alone.online(List.of(10.0, 20.0, 30.0), 0, 1);
    Outcome beside = new Outcome();
    beside.online(List.of(11.0, 25.0, 30.5), 0, 1);
    assertThat(beside.addedMs(alone, 50)).isEqualTo(1);
    assertThat(beside.addedMs(alone, 99)).isEqualTo(5);
  }
}
