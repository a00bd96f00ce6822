package dev.vgpu.bench.gpucheck.rm;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class InterposerReportTest {
  @Test
  void numbersAreReadByTheirNames() {
    InterposerReport report =
        InterposerReport.parse(
            "used 67108864            \npeak 134217728           \nhost_bytes 0 \nallocations 3 \n");
    assertThat(report.usedBytes()).isEqualTo(67108864);
    assertThat(report.peakBytes()).isEqualTo(134217728);
    assertThat(report.allocations()).isEqualTo(3);
  }

  @Test
  void reportOfAProgramWithoutACallOfTheDriverIsEmpty() {
    InterposerReport report = InterposerReport.parse("");
    assertThat(report.allocations()).isZero();
    assertThat(report.usedBytes()).isZero();
  }

  @Test
  void linesThatAreNoNumbersAreLeftOut() {
    assertThat(
            InterposerReport.parse("used many\npeak\nused 1 2\npeak 18446744073709551615").values())
        .isEmpty();
  }
}
