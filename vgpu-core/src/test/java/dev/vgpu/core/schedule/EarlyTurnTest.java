package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

/** What two tenants had of the time in which both had work on the GPU. */
class EarlyTurnTest {
  private static final double SLICE_NS = 1_024_000;

  @Test
  void laterOneHasItsWholeSlicesAndTheEarlierOneTheRest() {
    // The later one's slice, then 0.3 ms of the earlier one, which is done by then.
    assertThat(EarlyTurn.laterNs(SLICE_NS + 300_000)).isEqualTo(SLICE_NS);
    assertThat(EarlyTurn.laterNs(3 * SLICE_NS + 300_000)).isEqualTo(2 * SLICE_NS);
    assertThat(EarlyTurn.laterNs(5 * SLICE_NS + 900_000)).isEqualTo(3 * SLICE_NS);
  }

  @Test
  void clocksThatAreTiedBadlyChangeLittle() {
    assertThat(EarlyTurn.laterNs(2 * SLICE_NS + 40_000)).isEqualTo(SLICE_NS);
    assertThat(EarlyTurn.laterNs(SLICE_NS - 40_000)).isCloseTo(SLICE_NS, within(50_000.0));
    assertThat(EarlyTurn.laterNs(30_000)).isEqualTo(30_000);
  }
}
