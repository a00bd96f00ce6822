package dev.vgpu.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class ChaosOptionsTest {
  @Test
  void runsHaveSeedsOfTheirOwnThatTheFirstOneRepeats() {
    List<String> arguments = List.of("--seed", "7", "--runs", "20");
    List<ChaosOptions> runs = ChaosOptions.parse(arguments).each();
    assertThat(runs).hasSize(20).doesNotHaveDuplicates();
    assertThat(runs.get(0).seed()).isEqualTo(7);
    assertThat(ChaosOptions.parse(arguments).each()).isEqualTo(runs);
  }

  @Test
  void runsThatMakeNoSenseAreRefused() {
    assertThatThrownBy(() -> ChaosOptions.parse(List.of("--runs", "0")))
        .hasMessageContaining("--runs must be more than 0");
    assertThatThrownBy(() -> ChaosOptions.parse(List.of("--runs")))
        .hasMessageContaining("--runs needs a value");
  }

  @Test
  void aRunOfHardlyAnyStepsShowsNothing() {
    ChaosOptions options = ChaosOptions.parse(List.of());
    assertThat(options.isTooShort(0)).isTrue();
    assertThat(options.isTooShort(9)).isTrue();
    assertThat(options.isTooShort(10)).isFalse();
    assertThat(ChaosOptions.parse(List.of("--steps", "3")).isTooShort(3)).isFalse();
    assertThat(ChaosOptions.parse(List.of("--least-steps", "0")).isTooShort(0)).isFalse();
  }
}
