package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.samples.inference.DemoSpans.Span;
import java.util.List;
import org.junit.jupiter.api.Test;

final class DemoSpansTest {
  @Test
  void timeInWhichTwoCallsRanCountsOnce() {
    List<Span> sorted =
        List.of(
            new Span(0, 0, 100),
            new Span(0, 50, 70),
            new Span(1, 60, 1_000),
            new Span(0, 90, 120),
            new Span(0, 200, 210));

    assertThat(DemoSpans.unionNs(sorted, 0)).isEqualTo(130);
    assertThat(DemoSpans.unionNs(sorted, 1)).isEqualTo(940);
    assertThat(DemoSpans.unionNs(sorted, 2)).isZero();
  }

  @Test
  void theNewestSpansAreKept() {
    DemoSpans spans = new DemoSpans();
    for (int i = 0; i < DemoSpans.CAPACITY + 10; i++) {
      spans.add(i, spans.elapsedNs());
    }

    List<Span> kept = spans.sorted();
    assertThat(kept).hasSize(DemoSpans.CAPACITY);
    assertThat(kept)
        .extracting(Span::tenant)
        .doesNotContain(9)
        .contains(10, DemoSpans.CAPACITY + 9);
    assertThat(kept).allMatch(span -> span.endNs() >= span.startNs());
  }
}
