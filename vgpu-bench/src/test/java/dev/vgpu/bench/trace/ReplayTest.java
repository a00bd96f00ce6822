package dev.vgpu.bench.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.simulation.trace.Trace;
import dev.vgpu.simulation.trace.TraceRequest;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ReplayTest {
  private static final long SECOND_NS = 1_000_000_000;
  // Every request costs 10 ms.
  private static final CostCurve COSTS = new CostCurve(Map.of(64, 10_000_000L));

  @Test
  void takesAsManyRequestsAsFillTheLoad() {
    Replay replay = Replay.of(trace(1_000), COSTS, 0.25, 10 * SECOND_NS, "/embed");
    assertThat(replay.schedule().requests()).hasSize(250);
    assertThat(replay.expectedLoad()).isCloseTo(0.25, within(1e-9));
    assertThat(replay.speed()).isCloseTo(25, within(1e-9));
    assertThat(replay.meanCostNs()).isCloseTo(10e6, within(1e-3));
  }

  @Test
  void arrivalsKeepTheirRhythm() {
    Replay replay = Replay.of(trace(1_000), COSTS, 0.25, 10 * SECOND_NS, "/embed");
    assertThat(replay.schedule().requests().get(100).arrivalNs()).isEqualTo(4 * SECOND_NS);
  }

  @Test
  void shortTraceIsRepeated() {
    Replay replay = Replay.of(trace(10), COSTS, 0.25, 10 * SECOND_NS, "/embed");
    assertThat(replay.schedule().requests()).hasSize(250);
    assertThat(replay.traceLengthNs()).isEqualTo(250 * SECOND_NS);
  }

  @Test
  void loadBelowOneRequestSendsOne() {
    Replay replay = Replay.of(trace(10), COSTS, 0.001, SECOND_NS, "/embed");
    assertThat(replay.schedule().requests()).hasSize(1);
  }

  @Test
  void descriptionNamesTheSecondsAndTheFactor() {
    Replay replay = Replay.of(trace(1_000), COSTS, 0.25, 10 * SECOND_NS, "/embed");
    assertThat(replay.description())
        .isEqualTo("test, 12:00:00 to 12:04:10 (250 requests in 250 s), played 25.0 times as fast");
  }

  @Test
  void costsLieOnStraightLines() {
    CostCurve curve = new CostCurve(Map.of(10, 100L, 20, 300L));
    assertThat(curve.costNs(5)).isEqualTo(100);
    assertThat(curve.costNs(10)).isEqualTo(100);
    assertThat(curve.costNs(15)).isEqualTo(200);
    assertThat(curve.costNs(20)).isEqualTo(300);
    assertThat(curve.costNs(40)).isEqualTo(600);
  }

  @Test
  void passagesHoldTheTokens() {
    List<String> texts = new Passages().of(300, 5);
    assertThat(texts).hasSize(3);
    assertThat(texts.get(0).split(" ")).hasSize(102);
    assertThat(texts.get(2).split(" ")).hasSize(35);
    assertThat(new Passages().of(300, 5)).isEqualTo(texts);
    assertThat(new Passages().of(300, 6)).isNotEqualTo(texts);
  }

  @Test
  void promptsAreScaledAndBounded() {
    assertThat(Passages.tokens(0)).isPositive();
    assertThat(Passages.tokens(8_000)).isEqualTo(1_000);
    assertThat(new Passages().of(Passages.tokens(Integer.MAX_VALUE), Integer.MAX_VALUE))
        .hasSize(Passages.MAX_PASSAGES);
  }

  /** One request a second. */
  private static Trace trace(int count) {
    return new Trace(
        "test",
        LocalDateTime.of(2023, 11, 16, 12, 0),
        IntStream.range(0, count)
            .mapToObj(i -> new TraceRequest(i * SECOND_NS, 64 * 8, 1))
            .toList());
  }
}
