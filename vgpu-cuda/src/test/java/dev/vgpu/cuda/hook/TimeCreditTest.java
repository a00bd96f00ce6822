package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class TimeCreditTest {
  private static final long MS = 1_000_000;

  private final TimeCredit credit = new TimeCredit(0);

  private void credit(long ns) {
    credit.used(ns);
  }

  @Test
  void noMoreThanTimeHasPassed() {
    assertThat(credit.limitNs(10 * MS)).isEqualTo(10 * MS);
    credit(7 * MS);
    assertThat(credit.limitNs(10 * MS)).isEqualTo(3 * MS);
    credit(3 * MS);
    assertThat(credit.limitNs(10 * MS)).isZero();
    assertThat(credit.limitNs(5 * MS)).isZero();
  }

  @Test
  void idleTimeCannotBeClaimedLater() {
    credit.looked(true, 1_000 * MS);
    // One idle look settles nothing: GPU time that ended just before it may not be read yet.
    assertThat(credit.limitNs(1_001 * MS)).isEqualTo(1_001 * MS);
    credit.looked(true, 2_000 * MS);
    assertThat(credit.limitNs(2_000 * MS)).isBetween(1_000 * MS, 1_010 * MS);
    credit.looked(true, 3_000 * MS);
    assertThat(credit.limitNs(3_010 * MS)).isBetween(1_010 * MS, 1_020 * MS);
  }

  @Test
  void whatRunsForLongMayBeToldInOneLump() {
    credit.looked(true, 1_000 * MS);
    credit.looked(true, 1_002 * MS);
    for (long now = 1_004; now < 6_000; now += 2) {
      credit.looked(false, now * MS);
    }
    assertThat(credit.limitNs(6_000 * MS)).isGreaterThanOrEqualTo(5_000 * MS);
    credit(5_000 * MS);
    assertThat(credit.limitNs(6_000 * MS)).isLessThan(10 * MS);
  }
}
