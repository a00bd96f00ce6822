package dev.vgpu.bench.chaos.soak;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.bench.chaos.soak.Trend.Point;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TrendTest {
  private static List<Point> points(int segments, double perSecond) {
    List<Point> points = new ArrayList<>();
    for (int segment = 0; segment < segments; segment++) {
      for (int i = 0; i < 100; i++) {
        double wild = i % 7 == 0 ? 50 : 0;
        double noise = i % 3;
        double seconds = segment * 1_000 + i * 10;
        points.add(new Point(segment, seconds, 20 + noise + wild + perSecond * i * 10));
      }
    }
    return points;
  }

  @Test
  void growthIsSeenThroughNoiseAndWildPoints() {
    assertThat(Trend.slope(points(1, 0.01), 0)).isCloseTo(0.01, within(0.002));
  }

  @Test
  void whatOnlyGoesUpAndDownDoesNotGrow() {
    assertThat(Trend.slope(points(1, 0), 0)).isCloseTo(0, within(0.0005));
  }

  @Test
  void aNewBeginningIsComparedWithItselfAlone() {
    assertThat(Trend.slope(points(4, 0.01), 0)).isCloseTo(0.01, within(0.002));
    assertThat(Trend.longest(points(4, 0.01))).isEqualTo(990);
  }

  @Test
  void theWarmUpIsLeftOut() {
    List<Point> points = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      points.add(new Point(1, i, Math.min(i, 20)));
    }
    assertThat(Trend.slope(points, 30)).isZero();
    assertThat(Trend.slope(List.of(), 30)).isZero();
  }
}
