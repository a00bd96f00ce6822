package dev.vgpu.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LostTimeTest {
  private static final long MS = 1_000_000;

  private final LostTime lost = new LostTime();

  @Test
  void onlyWhatLiesWithinTheWaitCounts() {
    lost.add(100 * MS, 10);
    lost.add(200 * MS, 20);
    lost.add(300 * MS, 40);
    assertThat(lost.sinceMs(0)).isEqualTo(70);
    assertThat(lost.sinceMs(200 * MS)).isEqualTo(40);
    assertThat(lost.sinceMs(300 * MS)).isZero();
  }

  @Test
  void whatIsPaidBackSlowlyCountsAsLongAsThatTakes() {
    lost.add(100 * MS, 50);
    assertThat(lost.backMs(100 * MS + 199 * MS, 4)).isEqualTo(200);
    assertThat(lost.backMs(100 * MS + 200 * MS, 4)).isZero();
  }

  @Test
  void nothingLostIsNothingBack() {
    lost.add(100 * MS, 0);
    assertThat(lost.backMs(0, 10)).isZero();
  }
}
