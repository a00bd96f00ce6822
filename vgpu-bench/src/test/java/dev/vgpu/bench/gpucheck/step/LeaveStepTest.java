package dev.vgpu.bench.gpucheck.step;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LeaveStepTest {
  private static final long SECOND_NS = 1_000_000_000;

  /** On a GPU where a program takes 2 s, the first rows alone would fill the time. */
  @Test
  void aRowLeavesThoseBehindItTheirPart() {
    assertThat(LeaveStep.until(5 * SECOND_NS, 32 * SECOND_NS, 9)).isEqualTo(8 * SECOND_NS);
    assertThat(LeaveStep.until(8 * SECOND_NS, 32 * SECOND_NS, 8)).isEqualTo(11 * SECOND_NS);
    assertThat(LeaveStep.until(31 * SECOND_NS, 32 * SECOND_NS, 1)).isEqualTo(32 * SECOND_NS);
  }

  @Test
  void afterTheEndNoTimeIsLeft() {
    assertThat(LeaveStep.until(40 * SECOND_NS, 32 * SECOND_NS, 1)).isLessThan(40 * SECOND_NS);
  }
}
